import { Invalid } from "../lib/errors.ts";
import { parse, toValidationItems } from "../lib/field-errors.ts";
import {
  type LabelChanges,
  LabelKey,
  LabelValue,
  MAX_LABEL_KEYS,
  MAX_LABELLED_AGENTS,
} from "../schemas/fleet/labels.ts";
import { type CsvError, type CsvRow, parseCsv } from "./label-csv.ts";

/** Changes of labels in a CSV file. */
export interface LabelFile {
  /** Keys of the labels in the header. */
  keys: string[];
  /** The changes and the line of each agent, by name. */
  agents: ReadonlyMap<string, { line: number; changes: LabelChanges }>;
  /** Lines that are not valid. */
  errors: CsvError[];
}

const NAME_COLUMN = "ap_id";
/** Limits the size of an error response. */
const MAX_REPORTED_LINES = 1_000;
/** An empty cell is much longer as a change than in the file. */
const MAX_CHANGES_BYTES = 8 * 1024 * 1024;

/** Reads a file. Throws `Invalid` if its header is not valid or it is too large. */
export function readLabelFile(text: string): LabelFile {
  const { rows, errors } = parseCsv(text);
  const [header, ...lines] = rows;
  if (header === undefined || (errors[0]?.line ?? header.line) < header.line) {
    throw invalidLines([errors[0] ?? { line: 1, reason: headerExpected }]);
  }
  const keys = readHeader(header);
  if (lines.length > MAX_LABELLED_AGENTS) {
    const reason = `a file has at most ${MAX_LABELLED_AGENTS.toLocaleString("en-US")} agents`;
    throw invalidLines([{ line: lines[MAX_LABELLED_AGENTS]?.line ?? 0, reason }]);
  }
  const bytesOfEmptyLine = JSON.stringify(Object.fromEntries(keys.map((key) => [key, null]))).length;
  if (bytesOfEmptyLine * lines.length > MAX_CHANGES_BYTES) {
    throw invalidLines([{ line: 1, reason: "the file has too many cells; import it in parts" }]);
  }
  const agents = new Map<string, { line: number; changes: LabelChanges }>();
  for (const { line, cells } of lines) {
    const [apId = "", ...values] = cells;
    const reason = agents.has(apId)
      ? `the agent is on line ${agents.get(apId)?.line} already`
      : reasonToReject(values, keys);
    if (reason !== undefined) errors.push({ line, reason });
    else agents.set(apId, { line, changes: Object.fromEntries(keys.map((key, i) => [key, values[i] || null])) });
  }
  return { keys, agents, errors };
}

const headerExpected = `the first line must be \`${NAME_COLUMN}\` and the keys of labels`;

function readHeader({ line, cells: [first, ...keys] }: CsvRow): string[] {
  const reject = (reason: string) => invalidLines([{ line, reason }]);
  if (first !== NAME_COLUMN) throw reject(headerExpected);
  if (keys.length > MAX_LABEL_KEYS) throw reject(`a file has at most ${MAX_LABEL_KEYS} labels`);
  for (const [i, key] of keys.entries()) {
    const column = `column ${i + 2}`;
    const parsed = parse(LabelKey, key);
    if (!parsed.success) throw reject(`${column}: ${messageOf(parsed.error)}`);
    if (keys.indexOf(key) < i) throw reject(`${column}: the same label as an earlier column`);
  }
  return keys;
}

/** Returns why the values of a line are not valid, if so. An empty value removes the label. */
function reasonToReject(values: readonly string[], keys: readonly string[]): string | undefined {
  if (values.length !== keys.length) return `${keys.length + 1} cells expected, ${values.length + 1} found`;
  for (const [i, value] of values.entries()) {
    const parsed = value === "" ? undefined : parse(LabelValue, value);
    if (parsed?.success === false) return `column ${i + 2}: ${messageOf(parsed.error)}`;
  }
  return undefined;
}

const messageOf = (error: Parameters<typeof toValidationItems>[1]): string =>
  toValidationItems("body", error)[0]?.msg ?? "";

/** Returns the error that reports each line, in order. */
export function invalidLines(errors: readonly CsvError[]): Invalid {
  const reported = errors.toSorted((a, b) => a.line - b.line).slice(0, MAX_REPORTED_LINES);
  const items = reported.map(({ line, reason }) => ({
    loc: ["line", line],
    msg: `Value error, line ${line}: ${reason}`,
    type: "value_error",
  }));
  if (errors.length > reported.length) {
    const msg = `Value error, ${errors.length - reported.length} more lines are not valid`;
    items.push({ loc: [], msg, type: "value_error" });
  }
  return new Invalid(items);
}
