import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, type TestAgent } from "../accounts.ts";
import { seedSamples, selectRows, untilMerged } from "../clickhouse.ts";
import { forEachConcurrently } from "../stats.ts";
import type { LoadResult } from "./load.ts";
import { type BenchContext, CONNECTIONS, inTurns, load, meanMs, measureBareHono } from "./suite.ts";

/** What the dashboard requests: the last minutes, and charts over a long time. */

const METRICS = ["a", "b", "c", "d"];
const SEEDED = Object.fromEntries(METRICS.map((name, i) => [name, `round(100 * sin(number / ${1000 + i}), 2)`]));
const LIVE_S = 300;
const HOUR_S = 3_600;
const DAY_S = 86_400;
/** More charts are not open at the same time. */
const MOST_WATCHED = 1_000;
const ONE_AT_A_TIME = { connections: 1, components: ["worker", "clickhouse"] };

const chart = (apId: string, window: string, since = ""): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${METRICS.join()}&window=${window}${since}`;

export async function benchCharts(context: BenchContext, agents: readonly TestAgent[], sizes: readonly number[]) {
  const { clickhouse } = context;
  const days = context.isQuick ? 2 : 30;
  print("Filling the store.");
  const seed = (first: number, count: number, samples: number) =>
    seedSamples(clickhouse, { agents: { prefix: "bench", first, count }, samples, toMs: Date.now(), metrics: SEEDED });
  await seed(0, agents.length, LIVE_S);
  // The last agent has a long history, the one before it an hour.
  await seed(agents.length - 2, 1, HOUR_S);
  await seed(agents.length - 1, 1, days * DAY_S);
  // Merges use the same cores.
  await untilMerged(clickhouse);

  await liveQueries(context, agents, sizes);
  await longCharts(context, agents.at(-1) as TestAgent, days);
  for (const table of ["points_v1", "minutes_v1"]) await bytesOnDisk(context, table);
}

async function liveQueries(context: BenchContext, agents: readonly TestAgent[], sizes: readonly number[]) {
  const { client, report } = context;
  const watch = (watched: readonly TestAgent[], since = ""): Promise<LoadResult> => {
    const next = (connection: number, i: number) => {
      const { apId, token } = watched[(connection * 7 + i * CONNECTIONS) % watched.length] as TestAgent;
      return { token, path: chart(apId, "5m", since) };
    };
    return load(context, next, { components: ["worker"] });
  };
  /** The first query of an agent loads its live window. */
  const warmUp = (watched: readonly TestAgent[]) =>
    forEachConcurrently(watched, async ({ apId, token }) => void (await client.request(chart(apId, "5m"), { token })));

  const floor = await measureBareHono(context);
  let fewestMs: number | undefined;
  for (const count of sizes) {
    const watched = agents.slice(0, Math.min(count, MOST_WATCHED));
    await warmUp(watched);
    const result = await watch(watched);
    const ms = meanMs(result);
    fewestMs ??= ms;
    const what = `live query: 5 minutes of 4 metrics at 1/s, ${count} agents, ${watched.length} of them watched`;
    const details = { ...result.details, "ms of the service": ms, "time next to the fewest agents": ms / fewestMs };
    const ratio = { of: "bare Hono", value: result.perSecond / floor, wanted: "at least 0.15" };
    report.add(what, result.perSecond, "/s", details, ratio);
  }

  const [young, old] = agents.slice(-2).map((agent) => [agent]) as [[TestAgent], [TestAgent]];
  await warmUp([...young, ...old]);
  const ofYoung = await watch(young);
  const ofOld = await watch(old);
  const ratio = { of: "one with an hour's (time)", value: meanMs(ofOld) / meanMs(ofYoung), wanted: "at most 1.2" };
  report.add("live query of an agent with a long history", ofOld.perSecond, "/s", ofOld.details, ratio);

  const { perSecond, details } = await watch(agents.slice(0, sizes[1]), `&since=${Date.now() - 2_000}`);
  const ofBare = { of: "bare Hono", value: perSecond / floor };
  report.add("live query with since: what came in the last 2 s", perSecond, "/s", details, ofBare);
}

async function longCharts(context: BenchContext, { apId, token }: TestAgent, days: number): Promise<void> {
  const { product, report } = context;
  const toStore = { url: product.urls.clickhouse ?? "", connections: 1 };
  const smallest = await load(context, { path: "/?query=SELECT%201" }, toStore);
  report.add("the smallest query, sent to ClickHouse itself", meanMs(smallest), "ms", smallest.details);
  const windows = [
    { name: "an hour", hours: 1, wanted: undefined },
    { name: "a day", hours: 24, wanted: "at most 5" },
    { name: "a week", hours: 7 * 24, wanted: undefined },
    { name: `${days} days`, hours: days * 24, wanted: "at most 8" },
  ];
  let hourMs: number | undefined;
  for (const { name, hours, wanted } of windows.filter(({ hours }) => hours <= days * 24)) {
    const result = await load(context, { path: chart(apId, `${hours}h`), token }, ONE_AT_A_TIME);
    const ms = meanMs(result);
    hourMs ??= ms;
    const details = { ...result.details, "next to an hour": ms / hourMs };
    const ratio = { of: "the smallest query", value: ms / meanMs(smallest), wanted };
    report.add(`chart of 4 metrics over ${name}, from ClickHouse`, ms, "ms", details, ratio);
  }
}

async function bytesOnDisk({ clickhouse, report }: BenchContext, table: string): Promise<void> {
  const query = `SELECT sum(rows) AS count, sum(bytes_on_disk) AS bytes FROM system.parts
                 WHERE active AND database = currentDatabase() AND table = {table:String}`;
  const [size] = await selectRows<{ count: string; bytes: string }>(clickhouse, query, { table });
  const rows = Number(size?.count);
  report.add(`bytes on disk per row of ${table}`, Number(size?.bytes) / rows, "B", { rows });
}

const TECHNOLOGIES = ["WiFi", "LiFi", "5G"];

/** Charts of the whole network, next to the chart of one access point. */
export async function benchNetworkCharts(context: BenchContext): Promise<void> {
  const { product, clickhouse, isQuick, report, user } = context;
  const count = isQuick ? 1_000 : 10_000;
  print(`Filling the store with an hour of ${count} agents.`);
  const prefix = "bench-network";
  await makeAgents(product.dataDir, prefix, count, (i) => ({ access_point_type: TECHNOLOGIES[i % 3] }));
  const seed = { toMs: Date.now(), metrics: SEEDED };
  await seedSamples(clickhouse, { ...seed, agents: { prefix, count }, samples: 60, stepMs: 60_000 });
  await seedSamples(clickhouse, { ...seed, agents: { prefix }, samples: 3_600 });

  const network = `/api/v1/metrics/aggregate?metrics=${METRICS.join()}&window=1h`;
  const request = (path: string) => () => load(context, { path, token: user.token }, ONE_AT_A_TIME);
  const charts = {
    one: request(chart(`${prefix}-0`, "1h")),
    whole: request(network),
    groups: request(`${network}&by=technology&statistic=p95`),
    selected: request(`${network}&selector=technology=5G`),
  };
  const { one, whole, groups, selected } = await inTurns(charts, meanMs);
  report.add("chart of 4 metrics over an hour, one agent at 1/s", meanMs(one), "ms", one.details);
  const add = (what: string, result: LoadResult, wanted?: string) => {
    const ratio = { of: "one agent", value: meanMs(result) / meanMs(one), wanted };
    report.add(what, meanMs(result), "ms", result.details, ratio);
  };
  add(`mean of 4 metrics over an hour, ${count} agents at 1/min`, whole, "at most 10");
  add("their 95th percentile by technology", groups);
  add("the mean of a third of them, by selector", selected);
}
