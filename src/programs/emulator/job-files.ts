import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import type { Site } from "../../emulator/models/site.ts";
import { print } from "../shared/cli.ts";
import { PartMessage } from "./part-message.ts";

/** The parts that were heard of, one file each, so that a restart can go on with them. Nobody else may read them: they hold credentials. */

export interface Progress {
  startedMs: number;
  samples: number;
  sites: Site[];
  /** Commands that the sites have obeyed, until they expire. Saved together with the sites, so that neither is ahead of the other. */
  answered?: AnsweredCommand[];
}

export interface AnsweredCommand {
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

  /** How far a part had come; nothing where it may not even be ours. */
  progress(part: PartMessage): Progress | undefined {
    return this.#read(this.#fileOf(part))?.progress as Progress | undefined;
  }

  /** Where there is no room for it, as on a full disk, the part goes on all the same, and what was saved before stays. */
  save(part: PartMessage, progress?: Progress): void {
    const file = this.#fileOf(part);
    try {
      // Whole or not at all: what is half written does not take the place of what is there.
      writeFileSync(`${file}.new`, JSON.stringify({ part, progress }), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    } catch (error) {
      print(`Job ${part.job_number}, part ${part.part} could not be saved: ${(error as Error).message}`);
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
