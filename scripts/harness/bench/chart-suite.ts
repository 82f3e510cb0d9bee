import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import type { TestAgent } from "../accounts.ts";
import { type ClickHouse, selectRows } from "../clickhouse.ts";
import { forEachConcurrently } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadResult } from "../workload.ts";
import { type BenchContext, CONNECTIONS, latencies, measureBareHono } from "./suite.ts";

/** What the dashboard requests: the last minutes, and charts over a long time. */

const METRICS = ["a", "b", "c", "d"];
const LIVE_S = 300;
const HOUR_S = 3_600;
const DAY_S = 86_400;
/** More charts are not open at the same time. */
const MOST_WATCHED = 1_000;
/** Rows in one INSERT … SELECT: few enough for a small machine. */
const SEED_ROWS = 500_000;
const MAX_REST_MS = 180_000;

const chart = (apId: string, window: string, since = ""): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${METRICS.join()}&window=${window}${since}`;

export async function benchCharts(
  context: BenchContext,
  agents: readonly TestAgent[],
  sizes: readonly number[],
  clickhouse: ClickHouse,
): Promise<void> {
  const days = context.isQuick ? 2 : 30;
  print("Filling the store.");
  await seed(clickhouse, 0, agents.length, LIVE_S);
  // The last agent has a long history, the one before it an hour.
  const [young, old] = agents.slice(-2) as [TestAgent, TestAgent];
  await seed(clickhouse, agents.length - 2, 1, HOUR_S);
  await seed(clickhouse, agents.length - 1, 1, days * DAY_S);
  await untilMerged(clickhouse);

  await liveQueries(context, agents, sizes, [young, old]);
  await longCharts(context, old, days);
  await bytesOnDisk(context, clickhouse);
}

/** Inserts one sample per second for some agents, up to now. */
async function seed(clickhouse: ClickHouse, fromAgent: number, agents: number, spanS: number): Promise<void> {
  const rows = agents * spanS;
  const values = METRICS.map((metric, i) => `'${metric}', round(100 * sin(number / ${1000 + i}), 2)`);
  for (let at = 0; at < rows; at += SEED_ROWS) {
    await clickhouse.command({
      query: `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
        SELECT concat('bench-', toString(${fromAgent} + number % ${agents})), now64(3) - intDiv(number, ${agents}),
          map(${values.join(", ")}), map()
        FROM numbers(${at}, ${Math.min(SEED_ROWS, rows - at)})`,
      clickhouse_settings: { max_partitions_per_insert_block: "0" },
    });
  }
}

/** Waits until ClickHouse has merged what was inserted: merges use the same cores. */
async function untilMerged(clickhouse: ClickHouse): Promise<void> {
  for (const endMs = Date.now() + MAX_REST_MS; Date.now() < endMs; await sleep(1_000)) {
    if ((await selectRows(clickhouse, "SELECT 1 FROM system.merges LIMIT 1")).length === 0) return;
  }
}

async function liveQueries(
  context: BenchContext,
  agents: readonly TestAgent[],
  sizes: readonly number[],
  [young, old]: [TestAgent, TestAgent],
): Promise<void> {
  const { product, client, seconds, report } = context;
  const watch = (watched: readonly TestAgent[], since = ""): Promise<LoadResult> =>
    generateLoad({
      url: product.url,
      seconds,
      connections: CONNECTIONS,
      next: (connection, i) => {
        const { apId, token } = watched[(connection * 7 + i * CONNECTIONS) % watched.length] as TestAgent;
        return { method: "GET", token, path: chart(apId, "5m", since) };
      },
    });
  /** The first query of an agent loads its live window. */
  const warmUp = (watched: readonly TestAgent[]) =>
    forEachConcurrently(watched, async ({ apId, token }) => void (await client.request(chart(apId, "5m"), { token })));
  const meanMs = ({ perSecond }: LoadResult): number => 1000 / perSecond;

  const floor = await measureBareHono(context);
  let fewestMs: number | undefined;
  for (const count of sizes) {
    const watched = agents.slice(0, Math.min(count, MOST_WATCHED));
    await warmUp(watched);
    const cpu = cpuOf(product, ["worker"]);
    const result = await watch(watched);
    const ms = meanMs(result);
    fewestMs ??= ms;
    const time = { "ms of the service": ms, "time next to the fewest agents": ms / fewestMs };
    report.add(
      `live query: 5 minutes of 4 metrics at 1/s, ${count} agents, ${watched.length} of them watched`,
      result.perSecond,
      "/s",
      {
        ratio: { of: "bare Hono", value: result.perSecond / floor, wanted: "at least 0.15" },
        details: { ...latencies(result), ...cpu.per(result.count), ...time },
      },
    );
  }

  await warmUp([young, old]);
  const ofYoung = await watch([young]);
  const ofOld = await watch([old]);
  report.add("live query of an agent with a long history", ofOld.perSecond, "/s", {
    ratio: { of: "one with an hour's (time)", value: meanMs(ofOld) / meanMs(ofYoung), wanted: "at most 1.2" },
    details: latencies(ofOld),
  });

  const cpu = cpuOf(product, ["worker"]);
  const changes = await watch(agents.slice(0, sizes[1]), `&since=${Date.now() - 2_000}`);
  report.add("live query with since: what came in the last 2 s", changes.perSecond, "/s", {
    ratio: { of: "bare Hono", value: changes.perSecond / floor },
    details: { ...latencies(changes), ...cpu.per(changes.count) },
  });
}

async function longCharts({ product, seconds, report }: BenchContext, agent: TestAgent, days: number): Promise<void> {
  const measure = async (url: string, path: string, token?: string) => {
    const result = await generateLoad({ url, seconds, connections: 1, next: () => ({ method: "GET", path, token }) });
    return { result, ms: 1000 / result.perSecond };
  };
  const smallest = await measure(product.urls.clickhouse ?? "", "/?query=SELECT%201");
  const what = "the smallest query, sent to ClickHouse itself";
  report.add(what, smallest.ms, "ms", { details: latencies(smallest.result) });
  const windows = [
    { name: "an hour", hours: 1 },
    { name: "a day", hours: 24, wanted: "at most 5" },
    ...(days > 7 ? [{ name: "a week", hours: 7 * 24 }] : []),
    { name: `${days} days`, hours: days * 24, wanted: "at most 8" },
  ];
  let hourMs: number | undefined;
  for (const { name, hours, wanted } of windows) {
    const cpu = cpuOf(product, ["worker", "clickhouse"]);
    const { result, ms } = await measure(product.url, chart(agent.apId, `${hours}h`), agent.token);
    hourMs ??= ms;
    report.add(`chart of 4 metrics over ${name}, from ClickHouse`, ms, "ms", {
      ratio: { of: "the smallest query", value: ms / smallest.ms, ...(wanted !== undefined && { wanted }) },
      details: { ...latencies(result), ...cpu.per(result.count), "next to an hour": ms / hourMs },
    });
  }
}

async function bytesOnDisk({ report }: BenchContext, clickhouse: ClickHouse): Promise<void> {
  for (const table of ["points_v1", "minutes_v1"]) {
    const query = `SELECT sum(rows) AS count, sum(bytes_on_disk) AS bytes FROM system.parts
                   WHERE active AND database = currentDatabase() AND table = {table:String}`;
    const [size] = await selectRows<{ count: string; bytes: string }>(clickhouse, query, { table });
    const [rows, bytes] = [Number(size?.count), Number(size?.bytes)];
    report.add(`bytes on disk per row of ${table}`, bytes / rows, "B", { details: { rows } });
  }
}
