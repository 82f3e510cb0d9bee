import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

/** A disk of its own for a folder, in memory, that can be filled up. Needs root. */

const MEGABYTES = 256;
const CHUNK = Buffer.alloc(1024 * 1024);
const SMALL_CHUNK = CHUNK.subarray(0, 4096);
/** Whoever lives there may still free a little. */
const TOP_UP_MS = 200;

export const canMount = (): boolean => process.getuid?.() === 0;

export class SmallDisk {
  readonly #folder: string;
  #ballast: number | undefined;
  #toppingUp: ReturnType<typeof setInterval> | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static mount(folder: string): SmallDisk {
    mkdirSync(folder, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${MEGABYTES}m`, "tmpfs", folder]);
    return new SmallDisk(folder);
  }

  fill(): void {
    const ballast = openSync(this.#file, "a");
    this.#ballast = ballast;
    this.#topUp(ballast);
    this.#toppingUp = setInterval(() => this.#topUp(ballast), TOP_UP_MS);
  }

  free(): void {
    clearInterval(this.#toppingUp);
    if (this.#ballast !== undefined) closeSync(this.#ballast);
    this.#ballast = undefined;
    rmSync(this.#file, { force: true });
  }

  unmount(): void {
    this.free();
    // At once for everybody who looks, and for good when the last file in it is closed.
    execFileSync("umount", ["--lazy", this.#folder]);
  }

  get #file(): string {
    return join(this.#folder, "ballast");
  }

  #topUp(ballast: number): void {
    for (const chunk of [CHUNK, SMALL_CHUNK]) {
      try {
        while (writeSync(ballast, chunk) > 0);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
  }
}
