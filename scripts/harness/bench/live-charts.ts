import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../../../src/programs/shared/cli.ts";
import type { TestAgent } from "../accounts.ts";
import type { ClickHouse } from "../clickhouse.ts";
import { forEachConcurrently } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadResult } from "../workload.ts";
import type { BenchContext } from "./context.ts";
import { measureBareHono } from "./requests.ts";
import { latencies } from "./samples.ts";

/** What the dashboard asks for: the last minutes, charts over a long time, and what there is to chart. */

const METRICS = ["a", "b", "c", "d"];
const LIVE_S = 300;
const HOUR_S = 3_600;
const DAY_S = 86_400;
const WATCHING = 32;
/** Rows in one INSERT … SELECT: enough to be quick, few enough for a small machine. */
const SEED_ROWS = 500_000;
const MAX_REST_MS = 180_000;

export async function benchCharts(
  context: BenchContext,
  agents: readonly TestAgent[],
  sizes: readonly number[],
  clickhouse: ClickHouse,
): Promise<void> {
  const days = context.isQuick ? 2 : 30;
  print("Filling the store.");
  await seed(clickhouse, { fromAgent: 0, agents: agents.length, spanS: LIVE_S });
  // Two of them have a past besides: the last one a long one, the one before it an hour's.
  const young = agents.at(-2) as TestAgent;
  const old = agents.at(-1) as TestAgent;
  await seed(clickhouse, { fromAgent: agents.length - 2, agents: 1, spanS: HOUR_S });
  await seed(clickhouse, { fromAgent: agents.length - 1, agents: 1, spanS: days * DAY_S });
  await atRest(clickhouse);

  await liveQueries(context, agents, sizes, [young, old]);
  await longCharts(context, old, days);
  await bytesOnDisk(context, clickhouse);
}

interface Seed {
  /** The first of them, by number. */
  fromAgent: number;
  agents: number;
  spanS: number;
}

/** A sample a second from each of them, up to now. */
async function seed(clickhouse: ClickHouse, { fromAgent, agents, spanS }: Seed): Promise<void> {
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

/** What was put in is still being merged, on the same cores: not what is to be measured. */
async function atRest(clickhouse: ClickHouse): Promise<void> {
  for (const endMs = Date.now() + MAX_REST_MS; Date.now() < endMs; await sleep(1_000)) {
    const answer = await clickhouse.query({
      query: "SELECT count() AS count FROM system.merges",
      format: "JSONEachRow",
    });
    if (Number((await answer.json<{ count: string }>())[0]?.count) === 0) return;
  }
}

async function liveQueries(
  context: BenchContext,
  agents: readonly TestAgent[],
  sizes: readonly number[],
  [young, old]: [TestAgent, TestAgent],
): Promise<void> {
  const { product, seconds, report } = context;
  const watch = (watched: readonly TestAgent[], since = ""): Promise<LoadResult> =>
    generateLoad({
      url: product.url,
      seconds,
      connections: WATCHING,
      next: (connection, i) => {
        const { apId, token } = watched[(connection * 7 + i * WATCHING) % watched.length] as TestAgent;
        return { method: "GET", token, path: chart(apId, "5m", since) };
      },
    });
  /** The first look fills the memory. */
  const lookOnce = (watched: readonly TestAgent[]) =>
    forEachConcurrently(watched, async ({ apId, token }) => {
      await fetch(`${product.url}${chart(apId, "5m")}`, { headers: { Authorization: `Bearer ${token}` } });
    });
  const meanMs = ({ perSecond }: LoadResult): number => (1000 * WATCHING) / perSecond;

  const floor = await measureBareHono(context);
  let fewestMs: number | undefined;
  for (const count of sizes) {
    const watched = agents.slice(0, Math.min(count, MOST_WATCHED));
    await lookOnce(watched);
    const cpu = cpuOf(product, ["worker"]);
    const result = await watch(watched);
    fewestMs ??= meanMs(result);
    report.add({
      ...(count === MOST_WATCHED && { id: "live-query" }),
      what: `live query: 5 minutes of 4 metrics at 1/s, ${count} agents, ${watched.length} of them watched`,
      value: result.perSecond,
      unit: "/s",
      ratio: { of: "bare Hono", value: result.perSecond / floor, wanted: "at least 0.15" },
      details: {
        ...latencies(result),
        ...cpu.per(result.count),
        "time next to the fewest agents": meanMs(result) / fewestMs,
      },
      growth: { curve: "Live query", x: count, of: "agents", y: meanMs(result) / WATCHING, unit: "ms of the service" },
    });
  }

  await lookOnce([young, old]);
  const ofYoung = await watch([young]);
  const ofOld = await watch([old]);
  report.add({
    what: "live query of an agent with a long history",
    value: ofOld.perSecond,
    unit: "/s",
    ratio: { of: "one with an hour's (time)", value: meanMs(ofOld) / meanMs(ofYoung), wanted: "at most 1.2" },
    details: latencies(ofOld),
  });

  const cpu = cpuOf(product, ["worker"]);
  const news = await watch(agents.slice(0, sizes[1]), `&since=${Date.now() - 2_000}`);
  report.add({
    id: "live-news",
    what: "live query with since: what came in the last 2 s",
    value: news.perSecond,
    unit: "/s",
    ratio: { of: "bare Hono", value: news.perSecond / floor },
    details: { ...latencies(news), ...cpu.per(news.count) },
  });
}

async function longCharts({ product, seconds, report }: BenchContext, agent: TestAgent, days: number): Promise<void> {
  const ask = (url: string, path: string, token?: string): Promise<LoadResult> =>
    generateLoad({
      url,
      seconds,
      connections: 1,
      next: () => ({ method: "GET", path, ...(token !== undefined && { token }) }),
    });
  const meanMs = ({ perSecond }: LoadResult): number => 1000 / perSecond;

  const metrics = await ask(product.url, `/api/v1/metrics/agent_metrics?agent=${agent.apId}`, agent.token);
  report.add({
    what: "discovery: which metrics an agent has",
    value: meanMs(metrics),
    unit: "ms",
    details: latencies(metrics),
  });
  const smallest = await ask(product.urls.clickhouse ?? "", "/?query=SELECT%201");
  report.add({
    what: "the smallest query, asked of ClickHouse itself",
    value: meanMs(smallest),
    unit: "ms",
    details: latencies(smallest),
  });
  const windows = [
    { name: "an hour", hours: 1 },
    { name: "a day", hours: 24, wanted: "at most 5" },
    ...(days > 7 ? [{ name: "a week", hours: 7 * 24 }] : []),
    { name: `${days} days`, hours: days * 24, wanted: "at most 8" },
  ];
  let hourMs: number | undefined;
  for (const { name, hours, wanted } of windows) {
    const cpu = cpuOf(product, ["worker", "clickhouse"]);
    const result = await ask(product.url, chart(agent.apId, `${hours}h`), agent.token);
    hourMs ??= meanMs(result);
    report.add({
      ...(hours === 24 && { id: "chart-day" }),
      what: `chart of 4 metrics over ${name}, from ClickHouse`,
      value: meanMs(result),
      unit: "ms",
      ratio: {
        of: "the smallest query",
        value: meanMs(result) / meanMs(smallest),
        ...(wanted !== undefined && { wanted }),
      },
      details: { ...latencies(result), ...cpu.per(result.count), "next to an hour": meanMs(result) / hourMs },
      growth: { curve: "Chart of 4 metrics", x: hours, of: "hours back", y: meanMs(result), unit: "ms" },
    });
  }
}

async function bytesOnDisk({ report }: BenchContext, clickhouse: ClickHouse): Promise<void> {
  for (const table of ["points_v1", "minutes_v1"] as const) {
    const answer = await clickhouse.query({
      query: `SELECT sum(rows) AS count, sum(bytes_on_disk) AS bytes FROM system.parts
              WHERE active AND database = currentDatabase() AND table = {table:String}`,
      query_params: { table },
      format: "JSONEachRow",
    });
    const [size] = await answer.json<{ count: string; bytes: string }>();
    report.add({
      id: `bytes-${table}`,
      what: `bytes on disk per row of ${table}`,
      value: Number(size?.bytes) / Number(size?.count),
      unit: "B",
      details: { rows: Number(size?.count) },
    });
  }
}

/** Nobody looks at ten thousand charts at once. */
const MOST_WATCHED = 1_000;

const chart = (apId: string, window: string, since = ""): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${METRICS.join()}&window=${window}${since}`;
