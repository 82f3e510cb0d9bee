import { version } from "../../package.json";
import { withDeadline } from "../lib/deadline.ts";
import { describeError, log } from "../lib/log.ts";
import { INITIAL_SERIES, type MetricName, series } from "./catalog.ts";
import { toText } from "./exposition.ts";
import type { Health } from "./health.ts";
import type { Ledger } from "./ledger.ts";
import type { MetricRecorder } from "./recorder.ts";

/** Returns all current metrics as text. Omits those that are not available within two seconds. */
export type Scrape = () => Promise<string>;

/** The value of one series. */
export interface Reading {
  metric: MetricName;
  labelValues?: readonly string[];
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
  /** Flushes the shards' metrics to the ledger and returns the number of samples waiting in each shard. */
  flushShards: () => Promise<Reading[]>;
  collectors: readonly Collector[];
}

const TIMEOUT_MS = 1_000;

export function createScrape({ recorder, ledger, health, flushShards, collectors }: ScrapeOptions): Scrape {
  return async () => {
    const values = new Map<string, number>();
    const set = ({ metric, labelValues = [], value }: Reading) => values.set(series(metric, ...labelValues), value);

    const addCounters = async (): Promise<void> => {
      // Flushes this isolate and the shards first. On one machine these hold all counts that the ledger does not have yet.
      const [waiting] = await Promise.all([flushShards(), collectOrSkip("recorder", () => recorder.flush())]);
      waiting.forEach(set);
      const read = await collectOrSkip("ledger", () => ledger.read());
      set({ metric: "controller_up", labelValues: ["ledger"], value: read === undefined ? 0 : 1 });
      if (read === undefined) return;
      // Adds the zeros only after reading the sums: zeros without the sums would look like a counter reset.
      for (const name of INITIAL_SERIES) values.set(name, 0);
      for (const [name, sum] of read.sums) values.set(name, sum);
      set({ metric: "controller_job_sockets", value: read.sockets });
    };
    const addHealth = async (): Promise<void> => {
      for (const [component, state] of Object.entries(await health.check()))
        set({ metric: "controller_up", labelValues: [component], value: state === "up" ? 1 : 0 });
    };
    const collected = collectors.map(async ({ name, collect }) => (await collectOrSkip(name, collect))?.forEach(set));

    set({ metric: "controller_build_info", labelValues: [version], value: 1 });
    await Promise.all([addCounters(), addHealth(), ...collected]);
    return toText(values);
  };
}

/** Returns undefined if the source fails or takes too long: the scrape then omits its metrics. */
async function collectOrSkip<T>(source: string, collect: () => Promise<T>): Promise<T | undefined> {
  try {
    return await withDeadline(TIMEOUT_MS, collect);
  } catch (error) {
    log.warn("metrics collection failed", { source, error: describeError(error) });
    return undefined;
  }
}
