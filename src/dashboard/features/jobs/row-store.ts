import { csvField, own } from "../../lib/format.ts";

/** Usually an object, but callback clients may post any JSON value. */
export type Row = unknown;

/** How much text the store buffers before it creates a Blob. */
const CHUNK_LENGTH = 1024 * 1024;
/** Rows with ever new field names must not grow the table without limit. */
const MAX_COLUMNS = 200;

/**
 * Stores every received row as NDJSON in Blobs. The browser may keep Blobs on disk, outside the page's memory.
 */
export class RowStore {
  readonly #columns = new Set<string>();
  #chunks: Blob[] = [];
  #buffered: string[] = [];
  #bufferedLength = 0;
  #count = 0;
  #length = 0;

  get count(): number {
    return this.#count;
  }

  /** In characters, which approximates bytes. */
  get length(): number {
    return this.#length;
  }

  add(rows: readonly Row[]): void {
    if (rows.length === 0) return;
    for (const row of rows) this.#addColumns(row);
    const text = `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;
    this.#buffered.push(text);
    this.#bufferedLength += text.length;
    this.#count += rows.length;
    this.#length += text.length;
    if (this.#bufferedLength >= CHUNK_LENGTH) this.#flush();
  }

  ndjson(): Blob[] {
    this.#flush();
    return [...this.#chunks];
  }

  /** Converts the NDJSON chunk by chunk, so that the whole table is never in memory. */
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

  #addColumns(row: Row): void {
    for (const name in fieldsOf(row)) {
      if (this.#columns.size < MAX_COLUMNS) this.#columns.add(name);
    }
  }

  #flush(): void {
    if (this.#buffered.length === 0) return;
    this.#chunks.push(new Blob(this.#buffered));
    this.#buffered = [];
    this.#bufferedLength = 0;
  }
}

const csvRecord = (row: Row, columns: readonly string[]): string => {
  const fields = fieldsOf(row);
  return columns.map((name) => csvField(own(fields, name))).join(",");
};

/** Returns a row as named fields. A value that is not an object becomes the field `value`. */
export const fieldsOf = (row: Row): Record<string, unknown> =>
  typeof row === "object" && row !== null && !Array.isArray(row) ? (row as Record<string, unknown>) : { value: row };
