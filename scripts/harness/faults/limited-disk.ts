import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const MEGABYTES = 256;
const CHUNK = Buffer.alloc(1024 * 1024);
/** The component that uses the disk may still free a little. */
const REFILL_MS = 200;

export const canMount = (): boolean => process.getuid?.() === 0;

/** A small disk in memory for one folder, which can be filled up. Needs root. */
export class LimitedDisk {
  readonly #folder: string;
  readonly #file: string;
  #refilling: ReturnType<typeof setInterval> | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, "ballast");
  }

  static mount(folder: string): LimitedDisk {
    mkdirSync(folder, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${MEGABYTES}m`, "tmpfs", folder]);
    return new LimitedDisk(folder);
  }

  fill(): void {
    appendUntilFull(this.#file);
    this.#refilling = setInterval(() => appendUntilFull(this.#file), REFILL_MS);
  }

  free(): void {
    clearInterval(this.#refilling);
    rmSync(this.#file, { force: true });
  }

  unmount(): void {
    this.free();
    // Detaches the disk now, and removes it when its last file is closed.
    execFileSync("umount", ["--lazy", this.#folder]);
  }
}

function appendUntilFull(path: string): void {
  const file = openSync(path, "a");
  for (const chunk of [CHUNK, CHUNK.subarray(0, 4096)]) {
    try {
      while (writeSync(file, chunk) > 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
  closeSync(file);
}
