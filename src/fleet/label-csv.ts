/** CSV as in RFC 4180, and with any line ends. */

export interface CsvRow {
  /** Number of the line that the row begins on, from 1. */
  line: number;
  cells: string[];
}

export interface CsvError {
  line: number;
  reason: string;
}

export interface ParsedCsv {
  /** Without empty lines. */
  rows: CsvRow[];
  /** At most one for each line. The rows do not have these lines. */
  errors: CsvError[];
}

const LINE_END = /\r\n|\n|\r/g;
const PLAIN_CELL = /[^",\r\n]*/y;
const REST_OF_LINE = /[^\r\n]*/y;

export function parseCsv(text: string): ParsedCsv {
  const rows: CsvRow[] = [];
  const errors: CsvError[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    const { cells, end, reason } = readRow(text, at);
    if (reason !== undefined) errors.push({ line, reason });
    else if (cells.length > 1 || cells[0] !== "") rows.push({ line, cells });
    // A quoted cell may contain line ends.
    line += countLineEnds(text.slice(at, end)) + 1;
    at = text.startsWith("\r\n", end) ? end + 2 : end + 1;
  }
  return { rows, errors };
}

interface ReadRow {
  cells: string[];
  /** Index of the line end after the row. */
  end: number;
  /** Why the row is not valid. */
  reason?: string;
}

function readRow(text: string, start: number): ReadRow {
  const cells: string[] = [];
  for (let at = start; ; at++) {
    const cell = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at);
    if (cell === undefined) return { cells, end: text.length, reason: "a quoted cell has no closing quote" };
    cells.push(cell.value);
    at = cell.end;
    const next = text[at];
    if (next === undefined || next === "\r" || next === "\n") return { cells, end: at };
    if (next !== ",") {
      const end = at + matchAt(REST_OF_LINE, text, at).length;
      return { cells, end, reason: "a cell with a quote must be in quotes as a whole" };
    }
  }
}

const readPlain = (text: string, start: number) => {
  const value = matchAt(PLAIN_CELL, text, start);
  return { value, end: start + value.length };
};

/** Reads a cell in quotes. Two quotes inside stand for one. Returns undefined if the closing quote is missing. */
function readQuoted(text: string, start: number): { value: string; end: number } | undefined {
  for (let close = text.indexOf('"', start + 1); close >= 0; close = text.indexOf('"', close + 2)) {
    if (text[close + 1] === '"') continue;
    return { value: text.slice(start + 1, close).replaceAll('""', '"'), end: close + 1 };
  }
  return undefined;
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

const countLineEnds = (text: string): number => text.match(LINE_END)?.length ?? 0;

/** Returns a row with its line end. */
export const formatCsvRow = (cells: readonly string[]): string => `${cells.map(formatCell).join()}\r\n`;

const formatCell = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
