import * as z from "zod";

/** The API client of the programs that log in to the controller as a third-party app. */

export interface ControllerClientOptions {
  url: string;
  appName: string;
  apiKey: string;
}

export interface Login {
  token: string;
  lifetimeMs: number;
}

const Token = z.object({ access_token: z.string(), expires_in: z.number() });

export class ControllerClient {
  readonly #options: ControllerClientOptions;
  readonly #timeoutMs: number;
  #token = "";

  constructor(options: ControllerClientOptions, timeoutMs: number) {
    this.#options = options;
    this.#timeoutMs = timeoutMs;
  }

  get appName(): string {
    return this.#options.appName;
  }

  /** Logs in with the API key. The requests that follow use the new token. */
  async logIn(): Promise<Login> {
    const { appName, apiKey } = this.#options;
    const response = await this.requestToken("third_party_app", appName, apiKey);
    if (!response.ok) throw new Error(`the controller rejected the login of app ${appName} (${response.status})`);
    const { access_token, expires_in } = Token.parse(await response.json());
    this.#token = access_token;
    return { token: access_token, lifetimeMs: expires_in * 1000 };
  }

  protected requestToken(loginType: string, username: string, password: string): Promise<Response> {
    return fetchWithRetry(`${this.#options.url}/api/v1/token/?login_type=${loginType}`, {
      method: "POST",
      body: new URLSearchParams({ username, password }),
      timeoutMs: this.#timeoutMs,
    });
  }

  /** Posts JSON that the controller may receive more than once. */
  protected post(path: string, json: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetchWithRetry(`${this.#options.url}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json", ...headers },
      body: json,
      timeoutMs: this.#timeoutMs,
    });
  }
}

interface IdempotentRequest {
  method: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string | URLSearchParams;
  /** Of each attempt. */
  timeoutMs: number;
}

const MAX_ATTEMPTS = 3;

/** The controller sets this header on every response. A proxy in front of it does not. */
export const isFromController = ({ headers }: Response): boolean => headers.has("X-Request-Id");

/**
 * Sends an idempotent request: a login, a delivery, a callback with an `Idempotency-Key`. Retries it at once, up to twice, if the
 * connection breaks or if a proxy responds with 5xx. wrangler's proxy does so for a request on a connection that the Worker closes at
 * that moment, after 5 s of idle time.
 */
async function fetchWithRetry(url: string, { timeoutMs, ...init }: IdempotentRequest): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
      if (response.status < 500 || isFromController(response) || attempt === MAX_ATTEMPTS) return response;
      // An unread body keeps its connection busy.
      await response.body?.cancel();
    } catch (error) {
      // fetch reports a broken connection as a TypeError. After a timeout the caller has waited long enough.
      if (!(error instanceof TypeError) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
