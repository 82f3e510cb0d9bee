import { IN_WHOLE_MINUTES, MINUTE_MS, meanOf, OF_AGENTS, type RuleRange } from "./rule-range.ts";

/**
 * Queries for the means of all minutes of a period, in arrays for each agent. They add the rows up at their place in an array of all minutes:
 * a minute has several rows until ClickHouse has merged them, and grouping by minute takes five times as long.
 */

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;

/** Returns the first minute of a range, and the number of minutes. */
export function minutesIn({ fromMs, toMs }: Pick<RuleRange, "fromMs" | "toMs">): { firstMs: number; count: number } {
  const first = Math.ceil(fromMs / MINUTE_MS);
  return { firstMs: first * MINUTE_MS, count: Math.max(1, Math.floor(toMs / MINUTE_MS) - first + 1) };
}

/** Adds rows up by their position, as `name`. */
const sums = (count: number, unitMs: number, firstMs: number, [n, total]: readonly [string, string]): string => {
  const position = `intDiv(toInt64(toUnixTimestamp(minute)) * 1000 - ${firstMs}, ${unitMs})`;
  return `sumResample(0, ${count}, 1)(n, ${position}) AS ${n}, sumResample(0, ${count}, 1)(total, ${position}) AS ${total}`;
};

/** The array with the means of earlier days, for each hour of the period. */
export const hourMeans = (days: number): string => `usual_${days}`;

/**
 * Returns a query for the minutes with samples and their means, as `times` and `means`. With days, also for the means of the same hour of
 * that many days before, by hour, and for the number of the first hour.
 */
export function minutesQuery(range: RuleRange, condition: string, days: readonly number[] = []): string {
  const { firstMs, count } = minutesIn(range);
  const firstHour = Math.floor(range.fromMs / HOUR_MS);
  const hours = Math.floor(range.toMs / HOUR_MS) - firstHour + 1;
  const earlier = Math.max(0, ...days) * DAY_HOURS;
  const ofHours =
    days.length === 0
      ? ""
      : `, ${sums(hours + earlier, HOUR_MS, (firstHour - earlier) * HOUR_MS, ["hour_counts", "hour_totals"])}`;
  const usual = [...new Set(days)].map((lookback) => {
    const sum = (array: string) =>
      `arraySum(day -> ${array}[hour + ${earlier + 1} - day * ${DAY_HOURS}], range(1, ${lookback + 1}))`;
    return `, arrayMap(hour -> ${sum("hour_totals")} / ${sum("hour_counts")}, range(${hours})) AS ${hourMeans(lookback)}`;
  });
  const isInRange = days.length === 0 ? IN_WHOLE_MINUTES : withEarlier(earlier);
  return `
    SELECT ap_id, ${firstHour} AS first_hour${usual.join("")},
      arrayFilter((at, n) -> n > 0, arrayMap(i -> toInt64(${firstMs} + i * ${MINUTE_MS}), range(${count})), counts) AS times,
      arrayMap((total, n) -> ${meanOf("total", "n")}, arrayFilter((total, n) -> n > 0, totals, counts), arrayFilter(n -> n > 0, counts)) AS means
    FROM (
      SELECT ap_id, ${sums(count, MINUTE_MS, firstMs, ["counts", "totals"])}${ofHours}
      FROM minutes_v1
      WHERE ${OF_AGENTS} AND ${condition} AND ${isInRange}
      GROUP BY ap_id
    )`;
}

/** The whole hours before the period count, too. */
const withEarlier = (hours: number): string =>
  `minute >= toStartOfHour(fromUnixTimestamp64Milli({from:Int64})) - INTERVAL ${hours} HOUR
   AND minute <= fromUnixTimestamp64Milli({to:Int64})`;

/** Returns a query for the means of all minutes, as `filled`. A minute without samples has the mean of the one before. */
export function filledQuery(range: RuleRange, condition: string): string {
  const { firstMs, count } = minutesIn(range);
  return `
    SELECT ap_id, arrayFill(mean -> NOT isNaN(mean), arrayMap((total, n) -> if(n = 0, nan, ${meanOf("total", "n")}), totals, counts)) AS filled
    FROM (
      SELECT ap_id, ${sums(count, MINUTE_MS, firstMs, ["counts", "totals"])}
      FROM minutes_v1
      WHERE ${OF_AGENTS} AND ${condition} AND ${IN_WHOLE_MINUTES}
      GROUP BY ap_id
    )`;
}
