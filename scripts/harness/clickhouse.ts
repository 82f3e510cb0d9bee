import { ClickHouseLogLevel, createClient } from "@clickhouse/client-web";

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
