import { type ParseArgsConfig, parseArgs } from "node:util";
import { BadConfiguration } from "../../env.ts";
import { describeError } from "../../lib/log.ts";
import { isInterruption } from "./interruption.ts";

/** Output, arguments and errors of the command-line programs. */

const isColoured = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string): string => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = (text: string): string => paint(1, text);
export const dim = (text: string): string => paint(2, text);
export const red = (text: string): string => paint(31, text);

export function print(text: string): void {
  console.log(text);
}

/** Prints a line of a component after the component's name. Prints JSON lines unchanged if a log collector reads them. */
export function printFrom(component: string, line: string): void {
  const isForCollector = process.stdout.isTTY !== true && line.startsWith("{");
  console.log(isForCollector ? line : `${dim(`${component.padEnd(10)} │`)} ${line}`);
}

/** An error that the user can fix. Programs print its message without a stack trace. */
export class UserError extends Error {
  override name = "UserError";
}

/** Converts any error to a `UserError`, for commands that fail because of their settings or because a store is unavailable. */
export function toUserError(error: unknown): UserError {
  if (error instanceof UserError) return error;
  return new UserError(error instanceof BadConfiguration ? error.message : `Failed: ${describeError(error)}`);
}

/** Runs a command. Prints a `UserError` and exits with 1, exits with 130 after Ctrl-C, and rethrows any other error as a bug. */
export async function runCommand(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    // Work that was abandoned may still be running and would keep the process alive.
    if (isInterruption(error)) process.exit(130);
    const userError = error instanceof UserError ? error : argumentError(error, "See --help.");
    if (userError === undefined) throw error;
    print(red(userError.message));
    process.exitCode = 1;
  }
}

interface OptionBase {
  description: string;
  short?: string;
}
export type CommandOption =
  | (OptionBase & { type: "boolean" })
  /** `value` is the placeholder in the help: `file` gives `--config <file>`. */
  | (OptionBase & { type: "string"; value: string; default?: string })
  | (OptionBase & { type: "number"; value: string; default?: number; min: number; max: number; isInteger?: boolean });

export interface CommandSpec<Options extends Record<string, CommandOption>> {
  /** As the user types it: `npm run bridge`, `node scripts/broker.ts`. */
  name: string;
  /** Positional arguments, as the help shows them: `<folder>`. Without this, positional arguments are errors. */
  arguments?: string;
  /** What the command does. Paragraphs are separated by an empty line; the help wraps them. */
  summary: string;
  options?: Options;
  /** Further lists of the help by heading: `{ Settings: { SERVICE_URL: "URL of the controller" } }`. */
  sections?: Record<string, Record<string, string>>;
  /** Paragraphs at the end of the help. */
  notes?: string;
}

type OptionValue<Option> = Option extends { type: "boolean" }
  ? boolean
  : Option extends { type: "number" }
    ? number | (Option extends { default: number } ? never : undefined)
    : string | (Option extends { default: string } ? never : undefined);

export interface ParsedCommand<Options> {
  values: { [Name in keyof Options]: OptionValue<Options[Name]> };
  positionals: string[];
}

/**
 * Parses the arguments of a command. Returns undefined after printing the help for `--help` or `-h`. Throws a `UserError` that names the
 * argument that is wrong.
 */
export function parseCommand<const Options extends Record<string, CommandOption>>(
  spec: CommandSpec<Options>,
  args: string[] = process.argv.slice(2),
): ParsedCommand<Options> | undefined {
  const hint = `See ${invocation(spec)} --help.`;
  const options = Object.entries<CommandOption>(spec.options ?? {});
  const known: NonNullable<ParseArgsConfig["options"]> = { help: { type: "boolean", short: "h" } };
  for (const [name, { type, short }] of options) {
    known[name] = { type: type === "boolean" ? "boolean" : "string", ...(short !== undefined && { short }) };
  }
  const { values, positionals } = parse({ args, options: known, allowPositionals: spec.arguments !== undefined }, hint);
  if (values.help === true) {
    print(helpText(spec));
    return undefined;
  }
  const converted = options.map(([name, option]) => [name, convert(name, option, values[name], hint)]);
  return { values: Object.fromEntries(converted), positionals };
}

function parse(config: ParseArgsConfig, hint: string): { values: Record<string, unknown>; positionals: string[] } {
  try {
    return parseArgs(config);
  } catch (error) {
    throw argumentError(error, hint) ?? error;
  }
}

function convert(name: string, option: CommandOption, given: unknown, hint: string): unknown {
  if (option.type === "boolean") return given === true;
  if (given === undefined || option.type === "string") return given ?? option.default;
  const { min, max, isInteger = false } = option;
  const number = given === "" ? Number.NaN : Number(given);
  if (number >= min && number <= max && (!isInteger || Number.isInteger(number))) return number;
  throw new UserError(`--${name} must be a ${isInteger ? "whole number" : "number"} from ${min} to ${max}. ${hint}`);
}

/** Converts an error of `parseArgs`, whose messages quote the argument. Returns undefined for any other error. */
function argumentError(error: unknown, hint: string): UserError | undefined {
  if (!(error instanceof Error && "code" in error)) return undefined;
  const [, argument = ""] = /'([^']*)'/.exec(error.message) ?? [];
  switch (error.code) {
    case "ERR_PARSE_ARGS_UNKNOWN_OPTION":
      return new UserError(`Unknown option ${argument}. ${hint}`);
    case "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL":
      return new UserError(`Unexpected argument "${argument}". ${hint}`);
    case "ERR_PARSE_ARGS_INVALID_OPTION_VALUE": {
      const option = argument.replace(/^-\w, /, "").replace(/ <value>$/, "");
      const isFlag = error.message.includes("does not take an argument");
      return new UserError(`${option} ${isFlag ? "takes no value" : "needs a value"}. ${hint}`);
    }
    default:
      return undefined;
  }
}

const HELP_WIDTH = 110;

/** npm passes only the arguments after `--` to the command. */
const invocation = ({ name }: { name: string }): string => (name.startsWith("npm ") ? `${name} --` : name);

/** Returns what `--help` prints. */
export function helpText<Options extends Record<string, CommandOption>>(spec: CommandSpec<Options>): string {
  const options: Record<string, string> = {};
  for (const [name, option] of Object.entries<CommandOption>(spec.options ?? {})) {
    const short = option.short === undefined ? "" : `-${option.short}, `;
    const value = option.type === "boolean" ? "" : ` <${option.value}>`;
    const fallback = option.type === "boolean" || option.default === undefined ? "" : ` (default: ${option.default})`;
    options[`${short}--${name}${value}`] = `${option.description}${fallback}`;
  }
  options["-h, --help"] = "Show this help";
  const isNpm = spec.name.startsWith("npm ");
  const usage = spec.arguments === undefined && isNpm ? "[-- <options>]" : `${spec.arguments ?? ""} [<options>]`;
  const blocks = [
    `Usage: ${spec.arguments === undefined ? spec.name : invocation(spec)} ${usage.trim()}`,
    wrap(spec.summary),
  ];
  for (const [heading, entries] of Object.entries({ ...spec.sections, Options: options })) {
    blocks.push([`${heading}:`, ...list(entries)].join("\n"));
  }
  if (spec.notes !== undefined) blocks.push(wrap(spec.notes));
  return blocks.join("\n\n");
}

function list(entries: Record<string, string>): string[] {
  const width = Math.max(...Object.keys(entries).map(({ length }) => length));
  return Object.entries(entries).map(([name, description]) => {
    const indent = width + 4;
    return `  ${name.padEnd(width)}  ${wrap(description, HELP_WIDTH - indent).replaceAll("\n", `\n${" ".repeat(indent)}`)}`;
  });
}

/** Breaks each paragraph into lines of at most `width` characters, unless a single word is longer. */
function wrap(text: string, width = HELP_WIDTH): string {
  const paragraphs = text.trim().split(/\n\s*\n/);
  return paragraphs.map((paragraph) => wrapParagraph(paragraph, width)).join("\n\n");
}

function wrapParagraph(paragraph: string, width: number): string {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.trim().split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
