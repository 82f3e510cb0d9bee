import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { until } from "../../scripts/harness/product.ts";

export interface Account {
  username: string;
  password: string;
}

/** On a busy machine a killed component takes long to restart. */
const READY_TIMEOUT_MS = 90_000;
const MAX_ATTEMPTS = 5;

/** Calls the service of a running product. */
export class ServiceClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  call(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(20_000), ...init });
  }

  /** Sends a request with a bearer token and an optional JSON body. */
  send(method: string, path: string, token: string, body?: object): Promise<Response> {
    return this.call(path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
  }

  /** Makes a request that must succeed, and returns the response body. */
  async post(path: string, token: string, body: object): Promise<unknown> {
    const response = await untilAvailable(() => this.send("POST", path, token, body));
    const text = await response.text();
    expect(response.status, `POST ${path}: ${text}`).toBe(200);
    return JSON.parse(text);
  }

  postJson(path: string, body: object): Promise<Response> {
    return this.call(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  logIn(account: Account, loginType = "user"): Promise<Response> {
    const body = new URLSearchParams({ username: account.username, password: account.password });
    return this.call(`/api/v1/token/?login_type=${loginType}`, { method: "POST", body });
  }

  async tokenOf(account: Account, loginType?: string): Promise<string> {
    const response = await untilAvailable(() => this.logIn(account, loginType));
    return ((await response.json()) as { access_token: string }).access_token;
  }

  async me(account: Account): Promise<Response> {
    return await this.send("GET", "/api/v1/users/me", await this.tokenOf(account));
  }

  async untilReadyzSays(status: number): Promise<unknown> {
    let body: unknown;
    await until(async () => {
      const response = await this.call("/readyz");
      body = await response.json();
      return response.status === status;
    }, READY_TIMEOUT_MS);
    return body;
  }

  /** Waits until /readyz reports a component as down. */
  async untilDown(component: string): Promise<void> {
    expect(await this.untilReadyzSays(503)).toMatchObject({ status: "unavailable", parts: { [component]: "down" } });
  }
}

/** Repeats a request after 503, as clients should: on a busy machine a store may respond too late. */
async function untilAvailable(request: () => Promise<Response>): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await request();
    if (response.status !== 503 || attempt === MAX_ATTEMPTS) return response;
    await sleep(Number(response.headers.get("Retry-After")) * 1_000);
  }
}
