import type { Product } from "./product.ts";

/** The service as the loads see it: where it is, and how it has answered them so far. */

export type Place = Pick<Product, "url" | "dataDir" | "urls">;

export interface Answer {
  status: number;
  body: unknown;
}

export interface Question {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  token?: string;
  /** Sent as JSON, or as a form. */
  body?: object;
  headers?: Record<string, string>;
}

const TIMEOUT_MS = 60_000;

export class Target {
  readonly #place: Place;
  readonly #timeoutMs: number;
  /** What was waited for the longest since the last look, also where no answer came. */
  slowest = { ms: 0, path: "" };
  readonly statuses = new Map<number, number>();
  unanswered = 0;

  constructor(place: Place, timeoutMs = TIMEOUT_MS) {
    this.#place = place;
    this.#timeoutMs = timeoutMs;
  }

  get url(): string {
    return this.#place.url;
  }

  get dataDir(): string {
    return this.#place.dataDir;
  }

  get urls(): Record<string, string> {
    return this.#place.urls;
  }

  /** Begins to count anew. */
  forget(): void {
    this.slowest = { ms: 0, path: "" };
    this.statuses.clear();
    this.unanswered = 0;
  }

  /** Asks once; nothing where no whole answer came. */
  async ask(path: string, { method, token, body, headers }: Question = {}): Promise<Answer | undefined> {
    const isForm = body instanceof URLSearchParams;
    const startedMs = performance.now();
    try {
      const response = await fetch(`${this.url}${path}`, {
        method: method ?? (body === undefined ? "GET" : "POST"),
        headers: {
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...(body !== undefined && !isForm && { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
      const answer = { status: response.status, body: await response.json() };
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
      return answer;
    } catch {
      this.unanswered++;
      return undefined;
    } finally {
      const ms = performance.now() - startedMs;
      if (ms > this.slowest.ms) this.slowest = { ms, path: path.replace(/\?.*/, "") };
    }
  }
}
