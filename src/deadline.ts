/**
 * Time limits on what others do. In two steps: when the time is up there is a short second chance, since a password hash may have
 * kept this isolate busy for longer than that, with the answer lying there unread. Timers come before answers otherwise.
 */
const SECOND_CHANCE_MS = 100;

export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const late = Promise.withResolvers<never>();
  const giveUp = () => {
    const reason = new Error(`No answer within ${ms} ms`);
    controller.abort(reason);
    late.reject(reason);
  };
  let timer = setTimeout(() => {
    timer = setTimeout(giveUp, SECOND_CHANCE_MS);
  }, ms - SECOND_CHANCE_MS);
  try {
    return await Promise.race([work(controller.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
