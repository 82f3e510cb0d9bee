import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { seedSamples } from "../clickhouse.ts";
import type { LoadResult } from "./load.ts";
import { type BenchContext, inTurns, load, meanMs } from "./suite.ts";

/** Charts of the whole network, next to the chart of one access point. */

const METRICS = ["a", "b", "c", "d"];
const TECHNOLOGIES = ["WiFi", "LiFi", "5G"];

export async function benchNetworkCharts(context: BenchContext): Promise<void> {
  const { product, clickhouse, isQuick, report, user } = context;
  const count = isQuick ? 1_000 : 10_000;
  print(`Filling the store with an hour of ${count} agents.`);
  const prefix = "bench-network";
  await makeAgents(product.dataDir, prefix, count, (i) => ({ access_point_type: TECHNOLOGIES[i % 3] }));
  const metrics = Object.fromEntries(METRICS.map((name, i) => [name, `round(100 * sin(number / ${1000 + i}), 2)`]));
  const seed = { toMs: Date.now(), metrics };
  await seedSamples(clickhouse, { ...seed, agents: { prefix, count }, samples: 60, stepMs: 60_000 });
  await seedSamples(clickhouse, { ...seed, agents: { prefix }, samples: 3_600 });

  const network = `aggregate?metrics=${METRICS.join()}&window=1h`;
  const chart = (query: string) => () => {
    const request = { path: `/api/v1/metrics/${query}`, token: user.token };
    return load(context, request, { connections: 1, components: ["worker", "clickhouse"] });
  };
  const charts = {
    one: chart(`agent_multi_metric_data?agent=${prefix}-0&metrics=${METRICS.join()}&window=1h`),
    whole: chart(network),
    groups: chart(`${network}&by=technology&statistic=p95`),
    selected: chart(`${network}&selector=technology=5G`),
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
