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

/** Returns the first minute of a range, and the number of minutes. */
export function minutesIn({ fromMs, toMs }: Pick<RuleRange, "fromMs" | "toMs">): { firstMs: number; count: number } {
  const first = Math.ceil(fromMs / MINUTE_MS);
  return { firstMs: first * MINUTE_MS, count: Math.max(1, Math.floor(toMs / MINUTE_MS) - first + 1) };
}

/**
 * Returns a query for the minutes with samples and their means, in two arrays for each agent. Adds the rows up at their place in an array of
 * all minutes: a minute has several rows until ClickHouse has merged them, and grouping by minute takes several times as long.
 */
export function minutesQuery(range: RuleRange, condition: string): string {
  const { firstMs, count } = minutesIn(range);
  const position = `intDiv(toInt64(toUnixTimestamp(minute)) * 1000 - ${firstMs}, ${MINUTE_MS})`;
  return `
    SELECT ap_id, arrayFilter((at, n) -> n > 0, arrayMap(i -> toInt64(${firstMs} + i * ${MINUTE_MS}), range(${count})), counts) AS times,
      arrayMap((total, n) -> ${meanOf("total", "n")}, arrayFilter((total, n) -> n > 0, totals, counts), arrayFilter(n -> n > 0, counts)) AS means
    FROM (
      SELECT ap_id, sumResample(0, ${count}, 1)(n, ${position}) AS counts, sumResample(0, ${count}, 1)(total, ${position}) AS totals
      FROM minutes_v1
      WHERE ${OF_AGENTS} AND ${condition} AND ${IN_WHOLE_MINUTES}
      GROUP BY ap_id
    )`;
}
