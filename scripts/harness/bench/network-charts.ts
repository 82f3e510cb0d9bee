import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { seedSamples } from "../clickhouse.ts";
import type { LoadResult } from "./load.ts";
import { type BenchContext, inTurns, load, meanMs } from "./suite.ts";

/** Charts of the whole network, next to the chart of one access point. */

const METRICS = ["a", "b", "c", "d"];
const TECHNOLOGIES = ["WiFi", "LiFi", "5G"];
const PREFIX = "bench-network";
const MINUTE_MS = 60_000;

export async function benchNetworkCharts(context: BenchContext): Promise<void> {
  const { product, clickhouse, user, report } = context;
  const count = context.isQuick ? 1_000 : 10_000;
  print(`Filling the store with an hour of ${count} agents.`);
  await makeAgents(product.dataDir, PREFIX, count, (i) => ({
    access_point_type: TECHNOLOGIES[i % TECHNOLOGIES.length],
  }));
  const metrics = Object.fromEntries(METRICS.map((name, i) => [name, `round(100 * sin(number / ${1000 + i}), 2)`]));
  const seed = { toMs: Date.now(), metrics };
  await seedSamples(clickhouse, { ...seed, agents: { prefix: PREFIX, count }, samples: 60, stepMs: MINUTE_MS });
  await seedSamples(clickhouse, { ...seed, agents: { prefix: PREFIX }, samples: 3_600 });

  const request = (path: string) => () =>
    load(
      context,
      { path: `/api/v1/metrics/${path}&metrics=${METRICS.join()}&window=1h`, token: user.token },
      { connections: 1, components: ["worker", "clickhouse"] },
    );
  const { one, ...network } = await inTurns(
    {
      one: request(`agent_multi_metric_data?agent=${PREFIX}-0`),
      whole: request("aggregate?statistic=avg"),
      groups: request("aggregate?statistic=p95&by=technology"),
      selected: request("aggregate?statistic=avg&selector=technology=5G"),
    },
    meanMs,
  );
  report.add("chart of 4 metrics over an hour, one agent at 1/s, from ClickHouse", meanMs(one), "ms", one.details);
  const add = (what: string, result: LoadResult, wanted?: string) => {
    const ratio = { of: "one agent", value: meanMs(result) / meanMs(one), wanted };
    report.add(what, meanMs(result), "ms", result.details, ratio);
  };
  add(`mean of 4 metrics over an hour, ${count} agents at 1/min`, network.whole, "at most 10");
  add("their 95th percentile by technology", network.groups);
  add("the mean of a third of them, by selector", network.selected);
}
