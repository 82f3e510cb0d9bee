import { finite } from "./clickhouse-query.ts";

/** What the queries for backtests of rules have in common. */

/** From every sample, or from the means of minutes. */
export type Resolution = "minutes" | "samples";

/** A period of some agents. Both ends belong to it. */
export interface RuleRange {
  /** At most `MAX_AGENTS_PER_QUERY`. */
  apIds: readonly string[];
  fromMs: number;
  toMs: number;
  resolution: Resolution;
  /** Time after which the server stops the query. */
  timeLimitMs: number;
}

/** The server's limit for one parameter is 128 KiB. */
export const MAX_AGENTS_PER_QUERY = 200;
export const MINUTE_MS = 60_000;

export const OF_AGENTS = "ap_id IN {ap_ids:Array(String)}";
/** Numbers the agents in the order of the range. */
export const AGENT = "toInt32(indexOf({ap_ids:Array(String)}, ap_id)) - 1 AS agent";
export const IN_WHOLE_MINUTES =
  "minute >= fromUnixTimestamp64Milli({from:Int64}) AND minute <= fromUnixTimestamp64Milli({to:Int64})";
/** The mean of a minute. Sums of very large numbers may be infinite, or not be numbers. */
export const meanOf = (total: string, n: string): string => finite(`if(isNaN(${total} / ${n}), 0, ${total} / ${n})`);

export const settingsOf = ({ timeLimitMs }: Pick<RuleRange, "timeLimitMs">): string =>
  `SETTINGS max_execution_time = ${Math.max(1, Math.ceil(timeLimitMs / 1000))}`;
