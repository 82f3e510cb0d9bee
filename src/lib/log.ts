/** Structured log lines: one JSON object each, on standard output, where Workers Logs and any collector read them. */

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

/** The chain of causes as text. Never the values of a query: a driver's message may quote the parameters it was given. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  for (let cause: unknown = error; cause !== undefined && parts.length < 5; ) {
    if (!(cause instanceof Error)) {
      parts.push(typeof cause);
      break;
    }
    parts.push(`${cause.name}: ${cause.message.split("\nparams:")[0]}`);
    cause = cause.cause;
  }
  return parts.join(" < ");
}
