/**
 * Time limits on what others do, counted in short steps. A password hash keeps this isolate busy for a while, many of them for
 * seconds, with an answer lying there unread; of such a time, only one step counts.
 */
const STEP_MS = 50;

export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const late = Promise.withResolvers<never>();
  let leftMs = ms;
  const step = () => {
    leftMs -= STEP_MS;
    if (leftMs > 0) {
      timer = setTimeout(step, STEP_MS);
      return;
    }
    const reason = new Error(`No answer within ${ms} ms`);
    controller.abort(reason);
    late.reject(reason);
  };
  let timer = setTimeout(step, STEP_MS);
  try {
    return await Promise.race([work(controller.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
