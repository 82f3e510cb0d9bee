/** Returns a function that runs at most `max` calls of `work` at the same time. Further calls wait for their turn. */
export function limitCalls<A extends unknown[], R>(
  max: number,
  work: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (...args) => {
    if (running === max) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work(...args);
    } finally {
      // Passes its place on.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
