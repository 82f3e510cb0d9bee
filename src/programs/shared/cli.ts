import { isInterruption } from "./interruption.ts";

/** What a person sees. Colour only where somebody looks. */

const coloured = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string): string => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = (text: string): string => paint(1, text);
export const dim = (text: string): string => paint(2, text);
export const red = (text: string): string => paint(31, text);

export function print(text: string): void {
  console.log(text);
}

/** Prints a line of a component under its name. A log collector gets JSON lines as they are. */
export function printFrom(part: string, line: string): void {
  const isForCollector = process.stdout.isTTY !== true && line.startsWith("{");
  console.log(isForCollector ? line : `${dim(`${part.padEnd(10)} │`)} ${line}`);
}

/** A refusal that a person can act on: printed as it is, without a stack. */
export class UserError extends Error {
  override name = "UserError";
}

/** Runs a command to its end; a refusal is printed, and is the only failure that is not a bug. Ctrl-C is none. */
export async function runCommand(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    // What was left to itself may still be trying.
    if (isInterruption(error)) process.exit(130);
    if (!(error instanceof UserError || isMistyped(error))) throw error;
    print(red(error instanceof UserError ? error.message : `${error.message} Try --help.`));
    process.exitCode = 1;
  }
}

/** An option that `parseArgs` did not take. */
const isMistyped = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS_");
