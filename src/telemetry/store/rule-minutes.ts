import { IN_WHOLE_MINUTES, MINUTE_MS, meanOf, OF_AGENTS, type RuleRange } from "./rule-range.ts";

/**
 * Queries for the means of minutes, in arrays for each agent. They add the rows up at their place in an array of all minutes of the period: a
 * minute has several rows until ClickHouse has merged them, and grouping by minute takes five times as long. No lambda refers to an array
 * outside of its arguments: ClickHouse would copy it for each element.
 */

const HOUR_MS = 3_600_000;
const MINUTES_PER_HOUR = 60;
const HOURS_PER_DAY = 24;

/** The mean of the same hour of some days before, for each of the minutes. */
export const usualMeans = (days: number): string => `usual_${days}`;

/**
 * Returns a query for the minutes with samples, as `times`, and their means, as `means`. If days are given, also for the means of the same
 * hour of that many days before.
 */
export function minutesQuery(range: RuleRange, condition: string, days: readonly number[] = []): string {
  const first = Math.ceil(range.fromMs / MINUTE_MS);
  const count = Math.max(1, Math.floor(range.toMs / MINUTE_MS) - first + 1);
  const hours = days.length === 0 ? undefined : hoursOf(range, Math.max(...days));
  const isPresent = (array: string): string => `arrayFilter((one, n) -> n > 0, ${array}, counts)`;
  const usual = [...new Set(days)].map(
    (lookback) => `${isPresent(hours?.toMinutes(lookback, first, count) ?? "")} AS ${usualMeans(lookback)},`,
  );
  return `
    SELECT ap_id, ${usual.join("")}
      ${isPresent(`arrayMap(i -> toInt64((${first} + i) * ${MINUTE_MS}), range(${count}))`)} AS times,
      arrayMap((total, n) -> ${meanOf("total", "n")}, ${isPresent("totals")}, ${isPresent("counts")}) AS means
    FROM (
      SELECT ap_id, ${sums(count, MINUTE_MS, first, ["counts", "totals"])} ${hours?.sums ?? ""}
      FROM minutes_v1
      WHERE ${OF_AGENTS} AND ${condition} AND ${hours?.condition ?? IN_WHOLE_MINUTES}
      GROUP BY ap_id
    )`;
}

/** Adds rows up in arrays. An element is a unit of time, the first one that with the number `first`. */
const sums = (count: number, unitMs: number, first: number, [n, total]: readonly [string, string]): string => {
  const position = `intDiv(toInt64(toUnixTimestamp(minute)), ${unitMs / 1000}) - ${first}`;
  return `sumResample(0, ${count}, 1)(n, ${position}) AS ${n}, sumResample(0, ${count}, 1)(total, ${position}) AS ${total}`;
};

/** Parts of the query for the hours of a period and of the days before it. */
function hoursOf({ fromMs, toMs }: RuleRange, days: number) {
  const first = Math.floor(fromMs / HOUR_MS);
  const count = Math.floor(toMs / HOUR_MS) - first + 1;
  const earlier = days * HOURS_PER_DAY;
  return {
    sums: `, ${sums(earlier + count, HOUR_MS, first - earlier, ["hour_counts", "hour_totals"])}`,
    condition: `minute >= toDateTime(${(first - earlier) * (HOUR_MS / 1000)}) AND minute <= fromUnixTimestamp64Milli({to:Int64})`,
    /** Returns an expression for an array with the mean of earlier days for each minute. Adds the days up in the order of `baselineOf`. */
    toMinutes: (lookback: number, firstMinute: number, minutes: number): string => {
      const numbers = Array.from({ length: lookback }, (_, i) => i + 1);
      const names = (prefix: string) => numbers.map((day) => `${prefix}${day}`);
      const slices = (array: string) =>
        numbers.map((day) => `arraySlice(${array}, ${earlier - day * HOURS_PER_DAY + 1}, ${count})`);
      const lambda = `(${[...names("t"), ...names("n")].join()}) -> (${names("t").join(" + ")}) / (${names("n").join(" + ")})`;
      const means = `arrayMap(${lambda}, ${[...slices("hour_totals"), ...slices("hour_counts")].join()})`;
      const expanded = `arrayFlatten(arrayMap(mean -> arrayWithConstant(${MINUTES_PER_HOUR}, mean), ${means}))`;
      return `arraySlice(${expanded}, ${firstMinute - first * MINUTES_PER_HOUR + 1}, ${minutes})`;
    },
  };
}
