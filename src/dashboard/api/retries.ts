/** Quick retries of requests that are safe to repeat, after errors of the network or of a proxy in front of the service. */

/** The delays before the second and the third attempt. */
const DELAYS_MS = [150, 500] as const;

const LOGIN = "/api/v1/token/";

/** Returns whether a second copy of the request has no further effect on the service. */
export const isRepeatable = (method: string, path: string, headers: Headers): boolean =>
  method === "GET" || method === "HEAD" || path === LOGIN || headers.has("Idempotency-Key");

/** Returns false for the error response of a proxy: unlike the service, a proxy sends no request id. */
export const isFromService = ({ status, headers }: Response): boolean => status < 500 || headers.has("X-Request-Id");

/** Sends until the service responds, at most three times. Returns the last response, or throws the last error. */
export async function sendRepeatedly(
  send: () => Promise<Response>,
  signal?: AbortSignal,
  delaysMs: readonly number[] = DELAYS_MS,
): Promise<Response> {
  for (const delayMs of delaysMs) {
    const response = await send().catch(() => undefined);
    if (response !== undefined && isFromService(response)) return response;
    signal?.throwIfAborted();
    // An unread body would keep its connection busy.
    await response?.body?.cancel();
    await sleep(delayMs, signal);
  }
  return await send();
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
