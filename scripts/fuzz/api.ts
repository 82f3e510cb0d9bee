import { Refused } from "../stack/console.ts";

/** The service as somebody uses it who means well: to make the fuzzer's accounts, and to look after them. */

const TIMEOUT_MS = 30_000;

export type LoginType = "user" | "agent" | "third_party_app";

export class Api {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  /** What is answered; fails where that is not a success. */
  async call<T>(method: string, path: string, token?: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok)
      throw new Refused(`${method} ${path} was answered with ${response.status}: ${text.slice(0, 200)}`);
    return JSON.parse(text) as T;
  }

  async logIn(username: string, password: string, loginType: LoginType = "user", scope = ""): Promise<string> {
    const path = `/api/v1/token/?login_type=${loginType}`;
    const response = await fetch(`${this.url}${path}`, {
      method: "POST",
      body: new URLSearchParams({ username, password, scope }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Refused(`${username} cannot log in: ${response.status}`);
    return ((await response.json()) as { access_token: string }).access_token;
  }
}
