/** Writes one JSON object per line to standard output, which Workers Logs and other collectors read. Errors go to standard error. */

export type LogFields = Record<string, string | number | boolean | null | undefined>;
type Level = "info" | "warn" | "error";

function write(level: Level, message: string, fields: LogFields): void {
  const line = JSON.stringify({ time: new Date().toISOString(), level, message, ...fields });
  if (level === "error") console.error(line);
  else console.log(line);
}

export const log = {
  info: (message: string, fields: LogFields = {}): void => write("info", message, fields),
  warn: (message: string, fields: LogFields = {}): void => write("warn", message, fields),
  error: (message: string, fields: LogFields = {}): void => write("error", message, fields),
};

/**
 * Returns an error and its causes as text. Removes the parameters that a database driver appends to its message: they may contain secrets.
 */
export function describeError(error: unknown): string {
  const causes: string[] = [];
  for (let cause: unknown = error; cause !== undefined && causes.length < 5; ) {
    if (!(cause instanceof Error)) {
      causes.push(typeof cause);
      break;
    }
    causes.push(`${cause.name}: ${cause.message.split("\nparams:")[0]}`);
    cause = cause.cause;
  }
  return causes.join(" < ");
}
