import { UserError } from "../../src/programs/shared/cli.ts";

/** The service as somebody uses it who means well: to make accounts, to look after them, and to ask for what they may have. */

const TIMEOUT_MS = 30_000;
const MAX_SHOWN = 200;

export type LoginType = "user" | "agent" | "third_party_app";

export interface Request {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

export class Api {
  readonly url: string;
  /** Ends whatever is under way. */
  readonly signal: AbortSignal;

  constructor(url: string, signal: AbortSignal = new AbortController().signal) {
    this.url = url;
    this.signal = signal;
  }

  /** What is answered, whatever that is. */
  async send(method: string, path: string, { token, body, headers }: Request = {}): Promise<Answer> {
    const isForm = body instanceof URLSearchParams;
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && !isForm && { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
      signal: AbortSignal.any([this.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** What is answered; fails where that is not a success. */
  async call<T>(method: string, path: string, token?: string, body?: unknown): Promise<T> {
    const answer = await this.send(method, path, { ...(token !== undefined && { token }), body });
    if (answer.status !== 200) throw unexpected(`${method} ${path}`, answer);
    return JSON.parse(answer.text) as T;
  }

  async logIn(username: string, password: string, loginType: LoginType = "user", scope = ""): Promise<string> {
    const body = new URLSearchParams({ username, password, scope });
    const answer = await this.send("POST", `/api/v1/token/?login_type=${loginType}`, { body });
    if (answer.status !== 200) throw unexpected(`The login of ${username}`, answer);
    return (JSON.parse(answer.text) as { access_token: string }).access_token;
  }
}

/** With the number under which the service's log tells more. */
export function unexpected(what: string, { status, headers, text }: Answer): UserError {
  const requestId = headers.get("X-Request-Id");
  return new UserError(
    `${what} was answered with ${status}: ${text.slice(0, MAX_SHOWN)}${requestId === null ? "" : ` (request ${requestId})`}`,
  );
}
