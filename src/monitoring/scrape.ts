import { version } from "../../package.json";
import type { Outbox } from "../broker/outbox.ts";
import { withDeadline } from "../deadline.ts";
import type { Health } from "../health.ts";
import type { JobIndex } from "../jobs/job-index.ts";
import { describeError, log } from "../log.ts";
import type { Shards } from "../telemetry/shards.ts";
import { toText } from "./exposition.ts";
import { ALWAYS, type FigureName, series } from "./figures.ts";
import type { Ledger } from "./ledger.ts";
import type { Tally } from "./tally.ts";

/** All figures at this moment, as text. What cannot be had within two seconds is left out. */
export type Scrape = () => Promise<string>;

export interface ScrapeOptions {
  tally: Tally;
  ledger: Pick<Ledger, "read">;
  shards: Pick<Shards, "waiting">;
  health: Health;
  outbox: Pick<Outbox, "state">;
  index: Pick<JobIndex, "countByState">;
}

const ANSWER_MS = 1_000;

export function createScrape({ tally, ledger, shards, health, outbox, index }: ScrapeOptions): Scrape {
  return async () => {
    const values = new Map<string, number>();
    const set = (value: number, figure: FigureName, ...words: string[]) => values.set(series(figure, ...words), value);

    const counted = async (): Promise<void> => {
      // First what is still on the way, here and in the shards: on one machine that is all there is.
      const [waiting] = await Promise.all([shards.waiting(), inTime("tally", () => tally.handOver())]);
      for (const [shard, samples] of waiting) set(samples, "controller_ingest_waiting_samples", String(shard));
      const read = await inTime("ledger", () => ledger.read());
      set(read === undefined ? 0 : 1, "controller_up", "ledger");
      if (read === undefined) return;
      // Only now: where the sums are missing, a zero would look as if they began anew.
      for (const name of ALWAYS) values.set(name, 0);
      for (const [name, sum] of read.sums) values.set(name, sum);
      set(read.sockets, "controller_job_sockets");
    };
    const parts = async (): Promise<void> => {
      for (const [part, state] of Object.entries(await health.check()))
        set(state === "up" ? 1 : 0, "controller_up", part);
    };
    const outboxState = async (): Promise<void> => {
      const state = await inTime("outbox", () => outbox.state());
      if (state === undefined) return;
      set(state.messages, "controller_outbox_messages");
      set(state.oldestMs / 1_000, "controller_outbox_oldest_seconds");
    };
    const jobs = async (): Promise<void> => {
      for (const [state, count] of (await inTime("jobs", () => index.countByState())) ?? [])
        set(count, "controller_jobs", state);
    };

    set(1, "controller_build_info", version);
    await Promise.all([counted(), parts(), outboxState(), jobs()]);
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
