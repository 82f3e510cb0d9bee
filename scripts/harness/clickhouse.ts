import { ClickHouseLogLevel, createClient } from "@clickhouse/client-web";
import { until } from "./product.ts";

/** Direct access to the telemetry store of a product that runs on this machine. */

export type ClickHouse = ReturnType<typeof createClient>;

/** Opens a client for the work, and closes it afterwards. The timeout is long enough for queries over all data. */
export async function withClickHouse<T>(
  { urls }: { urls: Record<string, string> },
  work: (clickhouse: ClickHouse) => Promise<T>,
): Promise<T> {
  const clickhouse = createClient({
    url: urls.clickhouse ?? "",
    database: "controller",
    request_timeout: 600_000,
    // It warns of a timeout this long because of proxies; there is none here.
    log: { level: ClickHouseLogLevel.OFF },
  });
  try {
    return await work(clickhouse);
  } finally {
    await clickhouse.close();
  }
}

export async function selectRows<Row>(
  clickhouse: ClickHouse,
  query: string,
  query_params: Record<string, unknown> = {},
): Promise<Row[]> {
  const result = await clickhouse.query({ query, query_params, format: "JSONEachRow" });
  return await result.json<Row>();
}

/** Returns how many points of a metric are stored for the agents whose names match a pattern of LIKE. */
export async function countPoints(clickhouse: ClickHouse, metric: string, like: string): Promise<number> {
  const query = "SELECT count() AS n FROM points_v1 FINAL WHERE metric = {metric:String} AND ap_id LIKE {like:String}";
  const [row] = await selectRows<{ n: string }>(clickhouse, query, { metric, like });
  return Number(row?.n);
}

const MAX_MERGING_MS = 180_000;

/** Waits until no merge runs. Goes on after some minutes even if one does. */
export async function untilMerged(clickhouse: ClickHouse): Promise<void> {
  const isMerged = async () => (await selectRows(clickhouse, "SELECT 1 FROM system.merges LIMIT 1")).length === 0;
  await until(isMerged, MAX_MERGING_MS, 1_000).catch(() => {});
}

export interface Seed {
  /** The agents `<prefix>-<first>` and following. */
  agents: { prefix: string; first?: number; count?: number };
  /** How many samples each agent gets, by default one per second, the last one at `toMs`. */
  samples: number;
  stepMs?: number;
  toMs: number;
  /** SQL expressions of `number`, which counts the samples of all agents from 0, by metric. */
  metrics: Record<string, string>;
}

/** Rows in one INSERT … SELECT: few enough for a small machine. */
const SEED_ROWS = 200_000;

/** Inserts samples directly into the store. */
export async function seedSamples(clickhouse: ClickHouse, seed: Seed): Promise<void> {
  const { agents, samples, stepMs = 1_000, toMs, metrics } = seed;
  const { prefix, first = 0, count = 1 } = agents;
  const values = Object.entries(metrics).map(([metric, value]) => `'${metric}', ${value}`);
  for (let from = 0; from < count * samples; from += SEED_ROWS) {
    await clickhouse.command({
      query: `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
        SELECT concat('${prefix}-', toString(${first} + number % ${count})),
          fromUnixTimestamp64Milli(toInt64(${toMs} - intDiv(number, ${count}) * ${stepMs})), map(${values.join(", ")}), map()
        FROM numbers(${from}, ${Math.min(SEED_ROWS, count * samples - from)})`,
      clickhouse_settings: { max_partitions_per_insert_block: "0" },
    });
  }
}
