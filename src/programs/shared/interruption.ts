/** Ctrl-C and SIGTERM, for commands that clean up before they end. */

/** Printed at the first Ctrl-C by commands that clean up. */
export const CLEANUP_NOTICE = "Stopping and cleaning up. Press Ctrl-C again to exit without cleaning up.";

/** Both the terminal and npm send the signal, so the first Ctrl-C arrives twice within this time. */
const SAME_SIGNAL_MS = 500;

/** The reason of an aborted signal: the user interrupted the command. */
export class Interrupted extends Error {
  override name = "Interrupted";
}

/** Returns a signal that fires at the first Ctrl-C, and prints the notice then. A later Ctrl-C exits at once. */
export function interruption(notice?: string): AbortSignal {
  const stop = new AbortController();
  let firstMs = Number.POSITIVE_INFINITY;
  const interrupt = (): void => {
    if (Date.now() - firstMs > SAME_SIGNAL_MS) process.exit(130);
    if (stop.signal.aborted) return;
    firstMs = Date.now();
    if (notice !== undefined) console.log(notice);
    stop.abort(new Interrupted("Interrupted."));
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  return stop.signal;
}

/** Waits for work, or throws the signal's reason if the signal fires first. The work itself is not cancelled. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Also recognises an interruption that Node's own functions wrap as the cause of their error. */
export const isInterruption = (error: unknown): boolean =>
  error instanceof Interrupted || (error instanceof Error && error.cause instanceof Interrupted);
