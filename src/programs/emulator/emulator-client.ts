import * as z from "zod";
import { fetchSafely } from "../shared/safe-fetch.ts";

/** The service, as an emulator sees it. */

export interface EmulatorServiceOptions {
  url: string;
  appName: string;
  apiKey: string;
}

const TIMEOUT_MS = 10_000;
const Token = z.object({ access_token: z.string(), expires_in: z.number() });

/** What became of a report: taken, refused for good, or to be tried again. */
export type Reported = "taken" | "refused" | "later";

export class EmulatorService {
  readonly #options: EmulatorServiceOptions;
  #token = "";

  constructor(options: EmulatorServiceOptions) {
    this.#options = options;
  }

  get appName(): string {
    return this.#options.appName;
  }

  async logIn(): Promise<{ token: string; lifetimeMs: number }> {
    const { appName, apiKey } = this.#options;
    const response = await this.#askToken("third_party_app", appName, apiKey);
    if (!response.ok) throw new Error(`the service refused the login of ${appName} (${response.status})`);
    const { access_token, expires_in } = Token.parse(await response.json());
    this.#token = access_token;
    return { token: access_token, lifetimeMs: expires_in * 1000 };
  }

  /** Logs an agent in; whether it could be, or nothing where it should be tried again. */
  async logInAgent(apId: string, password: string): Promise<boolean | undefined> {
    const response = await this.#askToken("agent", apId, password).catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
    if (response === undefined || response.status >= 500 || response.status === 429) return undefined;
    return response.ok;
  }

  async report(jobNumber: string, items: readonly object[], key: string): Promise<Reported> {
    const response = await fetchSafely(`${this.#options.url}/api/v1/callback/emulator?job_number=${jobNumber}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${this.#token}`,
        "Content-Type": "application/json",
        "Idempotency-Key": key,
      },
      body: JSON.stringify(items),
      timeoutMs: TIMEOUT_MS,
    }).catch(() => undefined);
    await response?.arrayBuffer().catch(() => {});
    if (response?.status === 401) await this.logIn().catch(() => {});
    if (response?.ok) return "taken";
    const isFinal = response !== undefined && response.status < 500 && ![401, 429].includes(response.status);
    return isFinal ? "refused" : "later";
  }

  #askToken(loginType: string, username: string, password: string): Promise<Response> {
    return fetchSafely(`${this.#options.url}/api/v1/token/?login_type=${loginType}`, {
      method: "POST",
      body: new URLSearchParams({ username, password }),
      timeoutMs: TIMEOUT_MS,
    });
  }
}
