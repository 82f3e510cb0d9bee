/** Short retries of requests that are safe to repeat, for errors of the network and of proxies in front of the service. */

/** Before the second and the third attempt. */
const PAUSES_MS = [150, 500] as const;

const LOGIN = "/api/v1/token/";

/** Tells whether a second request of the kind changes nothing that the first did not. */
export const isRepeatable = (method: string, path: string, headers: Headers): boolean =>
  method === "GET" || method === "HEAD" || path === LOGIN || headers.has("Idempotency-Key");

/** Tells a response of the service from one of a proxy that did not reach it: the service names every request. */
export const isFromService = ({ status, headers }: Response): boolean => status < 500 || headers.has("X-Request-Id");

/** Sends until the service responds, at most three times. Returns the last response, or throws the last error. */
export async function sendRepeatedly(
  send: () => Promise<Response>,
  signal?: AbortSignal,
  pausesMs: readonly number[] = PAUSES_MS,
): Promise<Response> {
  for (const pauseMs of pausesMs) {
    const response = await send().catch(() => undefined);
    if (response !== undefined && isFromService(response)) return response;
    signal?.throwIfAborted();
    // An unread body would keep its connection busy.
    await response?.body?.cancel();
    await pause(pauseMs, signal);
  }
  return await send();
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
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
