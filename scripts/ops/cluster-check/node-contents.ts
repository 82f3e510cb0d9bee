import * as z from "zod";
import type { StoresConfig } from "../../../src/env.ts";
import { describeError } from "../../../src/lib/log.ts";
import { queryRows } from "../backup/clickhouse-http.ts";
import type { Written } from "./check-writer.ts";

/** Compares what each node has with what was acknowledged. */
export interface Comparison {
  isEqual: boolean;
  lines: string[];
}

const Contents = z.array(
  z.object({
    shard: z.coerce.number(),
    points: z.coerce.number(),
    minutes: z.coerce.number(),
    network: z.coerce.number(),
    total: z.coerce.number(),
  }),
);

/** Rows that are not merged yet count twice, so a duplicate is visible. The name of an agent tells its shard. */
const queryFor = (shards: number): string =>
  `SELECT shard, count() AS points, any(minute_count) AS minutes, any(network_count) AS network, sum(value) AS total
   FROM (SELECT toUInt32(cityHash64(ap_id) % ${shards}) AS shard, value FROM points_local_v1) AS points
   CROSS JOIN (SELECT sum(n) AS minute_count FROM minutes_local_v1) AS minutes
   CROSS JOIN (SELECT sum(n) AS network_count FROM network_minutes_local_v1) AS network
   GROUP BY shard`;

export async function compareNodes(
  config: StoresConfig,
  shards: number,
  written: readonly Written[],
): Promise<Comparison> {
  const found = new Map<number, number>();
  let isEqual = true;
  const lines: string[] = [];
  for (const url of config.CLICKHOUSE_URL) {
    const { host } = new URL(url);
    const contents = await readContents({ ...config, CLICKHOUSE_URL: [url] }, shards);
    if (typeof contents === "string") {
      isEqual = false;
      lines.push(`${host}: ${contents}`);
      continue;
    }
    const [first, ...others] = contents;
    const expected = written[first?.shard ?? -1];
    const isRight =
      others.length === 0 &&
      expected !== undefined &&
      first?.points === expected.samples &&
      first.minutes === expected.samples &&
      first.network === expected.samples &&
      first.total === expected.total;
    isEqual &&= isRight;
    if (first !== undefined) found.set(first.shard, (found.get(first.shard) ?? 0) + 1);
    const text =
      first === undefined
        ? "has no samples"
        : `shard ${first.shard + 1}, ${first.points} points, ${first.minutes} in minutes, ${first.network} in network minutes`;
    lines.push(`${host}: ${text}${isRight ? "" : `; expected ${expected?.samples ?? "samples of one shard only"}`}`);
  }
  if (found.size < shards) isEqual = false;
  return { isEqual, lines };
}

/** Returns the contents of a node by shard, or why they cannot be read. */
async function readContents(config: StoresConfig, shards: number): Promise<z.output<typeof Contents> | string> {
  try {
    return await queryRows(config, Contents, queryFor(shards));
  } catch (error) {
    return describeError(error);
  }
}
