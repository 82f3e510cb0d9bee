import { version } from "../../package.json";
import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";
import { ALWAYS, type MetricName, series } from "./catalog.ts";
import { toText } from "./exposition.ts";
import type { Health } from "./health.ts";
import type { Ledger } from "./ledger.ts";
import type { MetricRecorder } from "./recorder.ts";

/** All figures at this moment, as text. What cannot be had within two seconds is left out. */
export type Scrape = () => Promise<string>;

/** One value of a figure: of the series that the words name. */
export interface Reading {
  figure: MetricName;
  words?: readonly string[];
  value: number;
}

/** A named source of readings. */
export interface Collector {
  name: string;
  collect(): Promise<Reading[]>;
}

export interface ScrapeOptions {
  recorder: MetricRecorder;
  ledger: Pick<Ledger, "read">;
  health: Health;
  /** Flushes the counts of the shards to the ledger, and reads what waits in them. */
  flushShards: () => Promise<Reading[]>;
  collectors: readonly Collector[];
}

const ANSWER_MS = 1_000;

export function createScrape({ recorder, ledger, health, flushShards, collectors }: ScrapeOptions): Scrape {
  return async () => {
    const values = new Map<string, number>();
    const set = ({ figure, words = [], value }: Reading) => values.set(series(figure, ...words), value);

    const counted = async (): Promise<void> => {
      // First what is still on the way, here and in the shards: on one machine that is all there is.
      const [waiting] = await Promise.all([flushShards(), inTime("recorder", () => recorder.flush())]);
      waiting.forEach(set);
      const read = await inTime("ledger", () => ledger.read());
      set({ figure: "controller_up", words: ["ledger"], value: read === undefined ? 0 : 1 });
      if (read === undefined) return;
      // Only now: where the sums are missing, a zero would look as if they began anew.
      for (const name of ALWAYS) values.set(name, 0);
      for (const [name, sum] of read.sums) values.set(name, sum);
      set({ figure: "controller_job_sockets", value: read.sockets });
    };
    const parts = async (): Promise<void> => {
      for (const [part, state] of Object.entries(await health.check()))
        set({ figure: "controller_up", words: [part], value: state === "up" ? 1 : 0 });
    };
    const collected = collectors.map(async ({ name, collect }) => (await inTime(name, collect))?.forEach(set));

    set({ figure: "controller_build_info", words: [version], value: 1 });
    await Promise.all([counted(), parts(), ...collected]);
    return toText(values);
  };
}

/** Nothing where it fails or takes too long: a scrape tells what it can. */
async function inTime<T>(figures: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await withDeadline(ANSWER_MS, ask);
  } catch (error) {
    log.warn("figures are missing", { figures, error: describeError(error) });
    return undefined;
  }
}
