import * as z from "zod";
import { HOUR_MS } from "../../rules/baseline.ts";
import { finite, type RunQuery } from "./clickhouse-query.ts";

/** The mean of a metric at the same hour of earlier days, as `baselineOf` computes it. */
export interface HourMeansQuery {
  apIds: readonly string[];
  metric: string;
  /** The number of earlier days. */
  days: number;
  /** The beginning of the hour. */
  hourMs: number;
}

const DAY_MS = 24 * HOUR_MS;

const Means = z.array(z.object({ ap_id: z.string(), mean: z.number() }));

/** Returns the mean of all samples in that hour of the days before, by agent, from the rollup. Omits agents without samples then. */
export async function readHourMeans(
  rows: RunQuery,
  { apIds, metric, days, hourMs }: HourMeansQuery,
): Promise<Map<string, number>> {
  const means = await rows(
    Means,
    `SELECT ap_id, ${finite("sum(total) / sum(n)")} AS mean
     FROM minutes_v1
     WHERE ap_id IN {ap_ids:Array(String)} AND metric = {metric:String}
       AND minute >= fromUnixTimestamp64Milli({from:Int64}) AND minute < fromUnixTimestamp64Milli({to:Int64})
       AND (toInt64(toUnixTimestamp(minute)) * 1000 - {from:Int64}) % ${DAY_MS} < ${HOUR_MS}
     GROUP BY ap_id`,
    { ap_ids: apIds, metric, from: hourMs - days * DAY_MS, to: hourMs - DAY_MS + HOUR_MS },
  );
  return new Map(means.map(({ ap_id, mean }) => [ap_id, mean]));
}
