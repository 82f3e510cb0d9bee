import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { createZstdCompress, createZstdDecompress } from "node:zlib";
import { UserError } from "../../../src/programs/shared/cli.ts";
import type { BackupFile } from "./manifest.ts";

/** Reads and writes the files of a backup as streams of compressed lines. */

const NEWLINE = 10;

/** Writes a file that only its owner can read. Returns its size, checksum and number of lines. */
export async function writeLines(
  folder: string,
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<BackupFile & { lines: number }> {
  const hash = createHash("sha256");
  let lines = 0;
  let bytes = 0;
  const path = join(folder, file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await pipeline(
    async function* () {
      for await (const chunk of chunks) {
        for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) lines++;
        yield chunk;
      }
    },
    createZstdCompress(),
    async function* (compressed: AsyncIterable<Buffer>) {
      for await (const chunk of compressed) {
        hash.update(chunk);
        bytes += chunk.length;
        yield chunk;
      }
    },
    createWriteStream(path, { mode: 0o600, flush: true }),
    { signal },
  );
  return { file, bytes, sha256: hash.digest("hex"), lines };
}

export function readLines(folder: string, file: string): AsyncIterable<string> {
  const decompressed = createReadStream(join(folder, file)).pipe(createZstdDecompress());
  return createInterface({ input: decompressed, crlfDelay: Number.POSITIVE_INFINITY });
}

/** Throws if a file is missing, or differs from the one that was written. */
export async function verifyFile(
  folder: string,
  { file, bytes, sha256 }: BackupFile,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash("sha256");
  let length = 0;
  try {
    for await (const chunk of createReadStream(join(folder, file), { signal }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      length += chunk.length;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new UserError(`The backup is incomplete: ${file} is missing.`);
  }
  if (length !== bytes || hash.digest("hex") !== sha256)
    throw new UserError(`The backup is damaged: ${file} has changed since it was written.`);
}
