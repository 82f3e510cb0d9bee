import { csvField } from "../../lib/format.ts";
import { own } from "../../lib/own.ts";

/** What a row may be: an object mostly, though whoever posts to a job may post anything. */
export type Row = unknown;

/** Text that is gathered before the browser is handed it. */
const CHUNK_LENGTH = 1024 * 1024;
/** A row that names ever new fields must not make a table without end. */
const MAX_COLUMNS = 200;

/**
 * Every row that was received, as NDJSON in Blobs: these are the browser's to keep, on disk where it likes, and no burden to the page.
 */
export class RowStore {
  readonly #columns = new Set<string>();
  #chunks: Blob[] = [];
  #gathered: string[] = [];
  #gatheredLength = 0;
  #count = 0;
  #length = 0;

  get count(): number {
    return this.#count;
  }

  /** In characters, which are bytes for all but a few. */
  get length(): number {
    return this.#length;
  }

  add(rows: readonly Row[]): void {
    if (rows.length === 0) return;
    for (const row of rows) this.#noteColumns(row);
    const text = `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;
    this.#gathered.push(text);
    this.#gatheredLength += text.length;
    this.#count += rows.length;
    this.#length += text.length;
    if (this.#gatheredLength >= CHUNK_LENGTH) this.#handOver();
  }

  ndjson(): Blob[] {
    this.#handOver();
    return [...this.#chunks];
  }

  /** Made of the one above, piece by piece: it is never there as a whole. */
  async csv(): Promise<Blob[]> {
    const columns = [...this.#columns];
    const chunks = [new Blob([`${columns.map(csvField).join(",")}\r\n`])];
    for (const chunk of this.ndjson()) {
      const lines = (await chunk.text()).trimEnd().split("\n");
      const records = lines.map((line) => csvRecord(JSON.parse(line), columns));
      chunks.push(new Blob([`${records.join("\r\n")}\r\n`]));
    }
    return chunks;
  }

  #noteColumns(row: Row): void {
    for (const name in fieldsOf(row)) {
      if (this.#columns.size < MAX_COLUMNS) this.#columns.add(name);
    }
  }

  #handOver(): void {
    if (this.#gathered.length === 0) return;
    this.#chunks.push(new Blob(this.#gathered));
    this.#gathered = [];
    this.#gatheredLength = 0;
  }
}

const csvRecord = (row: Row, columns: readonly string[]): string => {
  const fields = fieldsOf(row);
  return columns.map((name) => csvField(own(fields, name))).join(",");
};

/** A row as named fields; what has no names is a value. */
export const fieldsOf = (row: Row): Record<string, unknown> =>
  typeof row === "object" && row !== null && !Array.isArray(row) ? (row as Record<string, unknown>) : { value: row };
