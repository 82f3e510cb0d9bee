/** Requests from our own programs to the service that are safe to repeat: logins, deliveries, callbacks with an `Idempotency-Key`. */

export interface SafeRequest {
  method: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string | URLSearchParams;
  /** For each attempt. */
  timeoutMs: number;
}

const MAX_ATTEMPTS = 3;

/** Every response of the service has this header. A proxy in front of it answers without it. */
const isFromService = ({ headers }: Response): boolean => headers.has("X-Request-Id");

/**
 * Repeats a request at once, twice at the most, if the connection breaks or a proxy answers with 5xx instead of the service. wrangler's
 * proxy does the latter for a request that it sends over a connection which the Worker closes at that moment, after 5 s of idle time.
 */
export async function fetchSafely(url: string, { timeoutMs, ...init }: SafeRequest): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
      if (response.status < 500 || isFromService(response) || attempt === MAX_ATTEMPTS) return response;
      // An unread body keeps its connection busy.
      await response.body?.cancel();
    } catch (error) {
      // fetch reports a broken connection as a TypeError. After a timeout the caller has waited long enough.
      if (!(error instanceof TypeError) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
