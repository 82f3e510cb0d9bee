/** Length of one step in which `withDeadline` counts time. */
const STEP_MS = 50;

/**
 * Runs `work`. Rejects and aborts its signal if it takes longer than `ms`. Counts the time in short steps, and a period in which the
 * isolate is blocked as one step: password hashes can block it for seconds, while a response is already waiting to be read.
 */
export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timeout = Promise.withResolvers<never>();
  let leftMs = ms;
  const step = () => {
    leftMs -= STEP_MS;
    if (leftMs > 0) {
      timer = setTimeout(step, STEP_MS);
      return;
    }
    const reason = new Error(`No response within ${ms} ms`);
    controller.abort(reason);
    timeout.reject(reason);
  };
  let timer = setTimeout(step, STEP_MS);
  try {
    return await Promise.race([work(controller.signal), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
