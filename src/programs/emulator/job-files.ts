import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import type { Site } from "../../emulator/models/site.ts";
import { print } from "../shared/cli.ts";
import { writeFileAtomically } from "../shared/system.ts";
import { PartMessage } from "./part-message.ts";

/** One file per part of a job, so that the emulator continues after a restart. The files contain credentials: only their owner reads them. */

export interface Progress {
  startedMs: number;
  samples: number;
  sites: Site[];
  /** The results of executed commands, until the commands expire. Saved together with the sites, so that the two always agree. */
  answered?: CommandResult[];
}

/** Stored in the files under these names. */
export interface CommandResult {
  jobNumber: string;
  expiresMs: number;
  answer: object;
}

const Saved = z.object({ part: PartMessage, progress: z.unknown().optional() });

export class JobFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  parts(): PartMessage[] {
    return readdirSync(this.#folder)
      .filter((file) => file.endsWith(".json"))
      .flatMap((file) => {
        const saved = this.#read(join(this.#folder, file));
        return saved === undefined ? [] : [saved.part];
      });
  }

  /** Returns the saved progress of a part, or undefined if this emulator may not have claimed the part yet. */
  progress(part: PartMessage): Progress | undefined {
    return this.#read(this.#fileOf(part))?.progress as Progress | undefined;
  }

  /** Saves a part. If the disk is full, the part continues, and the file keeps its earlier content. */
  save(part: PartMessage, progress?: Progress): void {
    try {
      writeFileAtomically(this.#fileOf(part), JSON.stringify({ part, progress }));
    } catch (error) {
      print(`Cannot save job ${part.job_number}, part ${part.part}: ${(error as Error).message}`);
    }
  }

  remove(part: PartMessage): void {
    rmSync(this.#fileOf(part), { force: true });
  }

  #fileOf({ job_number, part }: PartMessage): string {
    return join(this.#folder, `${job_number}-${part}.json`);
  }

  #read(file: string): z.output<typeof Saved> | undefined {
    try {
      return Saved.parse(JSON.parse(readFileSync(file, "utf8")));
    } catch {
      return undefined;
    }
  }
}
