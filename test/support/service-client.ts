import { expect } from "vitest";
import { until } from "../../scripts/harness/product.ts";

export interface Account {
  username: string;
  password: string;
}

/** On a busy machine a component that was killed takes its time to come back. */
const READY_TIMEOUT_MS = 90_000;

/** The service of a running product, as its users call it. */
export class ServiceClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  call(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(20_000), ...init });
  }

  /** A request with a bearer token and, if there is one, a JSON body. */
  send(method: string, path: string, token: string, body?: object): Promise<Response> {
    return this.call(path, {
      method,
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
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
    return ((await (await this.logIn(account, loginType)).json()) as { access_token: string }).access_token;
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

  /** Waits until /readyz names a component that is down. */
  async untilDown(component: string): Promise<void> {
    expect(await this.untilReadyzSays(503)).toMatchObject({ status: "unavailable", parts: { [component]: "down" } });
  }
}
