import { UserError } from "../../src/programs/shared/cli.ts";
import { type Product, until } from "./product.ts";

/** The HTTP client of the harness. It counts statuses, missing responses and the longest wait, so that a run can judge them. */

const TIMEOUT_MS = 60_000;
const MAX_SHOWN = 200;

export type LoginType = "user" | "agent" | "third_party_app";

export interface ApiRequest {
  /** Defaults to POST with a body and to GET without one. */
  method?: string;
  token?: string | undefined;
  /** Sent as a form if it is `URLSearchParams`, unchanged if it is a string, otherwise as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface ApiResponse {
  status: number;
  headers: Headers;
  text: string;
}

export class ApiClient {
  readonly url: string;
  /** Aborts the requests in progress. */
  readonly signal: AbortSignal;
  readonly statuses = new Map<number, number>();
  /** Requests without a complete response, by reason. */
  readonly failures = new Map<string, number>();
  /** The longest wait since the last reset, also of a request without a response. */
  slowest = { ms: 0, path: "" };
  readonly #timeoutMs: number;

  constructor(url: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}) {
    this.url = url;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.signal = options.signal ?? new AbortController().signal;
  }

  get unanswered(): number {
    return [...this.failures.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Clears all counts. */
  reset(): void {
    this.statuses.clear();
    this.failures.clear();
    this.slowest = { ms: 0, path: "" };
  }

  /** Sends a request and returns the response, whatever its status. Throws if no complete response arrives. */
  async request(path: string, { method, token, body, headers }: ApiRequest = {}): Promise<ApiResponse> {
    const startedMs = performance.now();
    const isForm = body instanceof URLSearchParams;
    try {
      const response = await fetch(`${this.url}${path}`, {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && !isForm && { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: isForm || typeof body === "string" ? body : JSON.stringify(body) }),
        signal: AbortSignal.any([this.signal, AbortSignal.timeout(this.#timeoutMs)]),
      });
      const text = await response.text();
      increment(this.statuses, response.status);
      return { status: response.status, headers: response.headers, text };
    } catch (error) {
      increment(this.failures, String(error));
      throw error;
    } finally {
      const ms = performance.now() - startedMs;
      if (ms > this.slowest.ms) this.slowest = { ms, path: path.replace(/\?.*/, "") };
    }
  }

  /** Sends a request whose response is JSON. Returns undefined if no complete response arrives. */
  async attempt(path: string, request: ApiRequest = {}): Promise<{ status: number; body: unknown } | undefined> {
    const response = await this.request(path, request).catch(() => undefined);
    if (response === undefined) return undefined;
    try {
      return { status: response.status, body: JSON.parse(response.text) };
    } catch {
      increment(this.failures, "invalid JSON");
      return undefined;
    }
  }

  /** Sends a request and returns the JSON of its response. Throws unless the status is 200. */
  async call<T>(path: string, request: ApiRequest = {}): Promise<T> {
    const response = await this.request(path, request);
    if (response.status !== 200) throw unexpected(`${request.method ?? "Request"} ${path}`, response);
    return JSON.parse(response.text) as T;
  }

  /** Returns a token. Throws if the login is rejected. */
  async logIn(username: string, password: string, loginType: LoginType = "user", scope = ""): Promise<string> {
    const body = new URLSearchParams({ username, password, scope });
    const response = await this.request(`/api/v1/token/?login_type=${loginType}`, { body });
    if (response.status !== 200) throw unexpected(`Login of ${username}`, response);
    return (JSON.parse(response.text) as { access_token: string }).access_token;
  }
}

/** Returns an error with the request id, which leads to the log of the service. */
export function unexpected(what: string, { status, headers, text }: ApiResponse): UserError {
  const requestId = headers.get("X-Request-Id");
  const id = requestId === null ? "" : ` (request ${requestId})`;
  return new UserError(`${what}: unexpected status ${status}: ${text.slice(0, MAX_SHOWN)}${id}`);
}

const TOWNS_WITHIN_MS = 120_000;

/** Waits until the service finds places by name. A new product loads the towns in the background, and responds with 503 until then. */
export async function untilTownsLoaded(client: ApiClient, token: string): Promise<void> {
  await until(async () => {
    const response = await client.request("/api/v1/places?text=London", { token });
    if (response.status !== 200 && response.status !== 503) throw unexpected("GET /api/v1/places", response);
    return response.status === 200;
  }, TOWNS_WITHIN_MS);
}

/** A running product as workloads see it. */
export interface Target {
  client: ApiClient;
  dataDir: string;
  /** The stores and the broker, by name. */
  urls: Record<string, string>;
}

export const targetOf = ({ url, dataDir, urls }: Pick<Product, "url" | "dataDir" | "urls">): Target => {
  return { client: new ApiClient(url), dataDir, urls };
};

const increment = <Key>(counts: Map<Key, number>, key: Key): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
