import type { Finding } from "./fuzz.ts";
import { SECRET_MARK } from "./vocabulary.ts";

const MAX_LINES = 20;

/** What the product printed that it should not have: secrets, and errors, which only bugs and failures are. */
export function logFindings(output: string): Finding[] {
  const told = output
    .split("\n")
    .filter((line) => line.includes(SECRET_MARK) || /\$argon2/.test(line) || isError(line));
  return [...new Set(told.map((line) => line.replace(/"(?:time|request_id)":"[^"]*",?/g, "")))]
    .slice(0, MAX_LINES)
    .map((line) => ({ what: `The product printed: ${line.slice(0, 1_000)}`, caller: "", curl: "" }));
}

/** What a caller sends over a WebSocket that is no WebSocket's is the caller's fault, although workerd tells of it. */
const isError = (line: string): boolean =>
  /"level":"error"|Uncaught/.test(line) && !line.includes("WebSocket protocol error");
