/** Ctrl-C, or SIGTERM, for commands that clear away behind themselves. */

/** What a command that has something to clear away says at the first one. */
export const CLEANUP_NOTICE = "Stopping; once more to leave everything as it is.";

/** The terminal and npm both send it, so the first one comes twice. */
const SAME_ONE_MS = 500;

/** Why something that was under way was not brought to its end. */
export class Interrupted extends Error {
  override name = "Interrupted";
}

/** Fires at the first one. A later one is meant: it ends the command at once. */
export function interruption(said?: string): AbortSignal {
  const stop = new AbortController();
  let firstMs = Number.POSITIVE_INFINITY;
  const interrupt = (): void => {
    if (Date.now() - firstMs > SAME_ONE_MS) process.exit(130);
    if (stop.signal.aborted) return;
    firstMs = Date.now();
    if (said !== undefined) console.log(said);
    stop.abort(new Interrupted("Cut off."));
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  return stop.signal;
}

/** What comes of some work, unless the signal comes first: then the work is left to itself. */
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

/** Also behind what Node's own functions throw. */
export const isInterruption = (error: unknown): boolean =>
  error instanceof Interrupted || (error instanceof Error && error.cause instanceof Interrupted);
