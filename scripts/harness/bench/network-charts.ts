import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser } from "../accounts.ts";
import { type ClickHouse, withClickHouse } from "../clickhouse.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadResult } from "../workload.ts";
import { type BenchContext, inTurns, latencies } from "./suite.ts";

/** Charts of the whole network, next to the chart of one access point. */

const METRICS = ["a", "b", "c", "d"];
const TECHNOLOGIES = ["WiFi", "LiFi", "5G"];
const HOUR_S = 3_600;
const MINUTE_S = 60;
/** Samples in one INSERT … SELECT: few enough for a small machine. */
const SEED_SAMPLES = 100_000;

export async function benchNetworkCharts(context: BenchContext): Promise<void> {
  const { product, seconds, isQuick, report } = context;
  const count = isQuick ? 1_000 : 10_000;
  print(`Filling the store with an hour of ${count} agents.`);
  const { token } = await makeUser(product.dataDir, "bench-network@example.com");
  await makeAgents(product.dataDir, "bench-network", count, (i) => ({
    access_point_type: TECHNOLOGIES[i % TECHNOLOGIES.length],
  }));
  await withClickHouse(product, async (clickhouse) => {
    await seed(clickhouse, count, MINUTE_S);
    await seed(clickhouse, 1, 1);
  });

  const network = `/api/v1/metrics/aggregate?metrics=${METRICS.join()}&window=1h`;
  const paths = {
    one: `/api/v1/metrics/agent_multi_metric_data?agent=bench-network-0&metrics=${METRICS.join()}&window=1h`,
    whole: network,
    groups: `${network}&by=technology&statistic=p95`,
    selected: `${network}&selector=technology=5G`,
  };
  const measure = (path: string) => async () => {
    const cpu = cpuOf(product, ["worker", "clickhouse"]);
    const result = await generateLoad({
      ...{ url: product.url, seconds, connections: 1 },
      next: () => ({ method: "GET", path, token }),
    });
    return { result, cpu: cpu.per(result.count) };
  };
  const ms = ({ result }: { result: LoadResult }): number => 1000 / result.perSecond;
  const { one, whole, groups, selected } = await inTurns(
    {
      one: measure(paths.one),
      whole: measure(paths.whole),
      groups: measure(paths.groups),
      selected: measure(paths.selected),
    },
    ms,
  );
  const add = (what: string, measured: typeof one, wanted?: string) =>
    report.add(what, ms(measured), "ms", {
      ...(measured !== one && { ratio: { of: "one agent", value: ms(measured) / ms(one), ...(wanted && { wanted }) } }),
      details: { ...latencies(measured.result), ...measured.cpu },
    });
  add("chart of 4 metrics over an hour, one agent at 1/s", one);
  add(`mean of 4 metrics over an hour, ${count} agents at 1/min`, whole, "at most 10");
  add("their 95th percentile by technology", groups);
  add("the mean of a third of them, by selector", selected);
}

/** Inserts an hour of samples of some agents. */
async function seed(clickhouse: ClickHouse, agents: number, stepS: number): Promise<void> {
  const samples = (agents * HOUR_S) / stepS;
  const values = METRICS.map((metric, i) => `'${metric}', round(100 * sin(number / ${1000 + i}), 2)`);
  for (let at = 0; at < samples; at += SEED_SAMPLES) {
    await clickhouse.command({
      query: `INSERT INTO samples_v1 (ap_id, ts, metrics, texts)
        SELECT concat('bench-network-', toString(number % ${agents})), now64(3) - intDiv(number, ${agents}) * ${stepS},
          map(${values.join(", ")}), map()
        FROM numbers(${at}, ${Math.min(SEED_SAMPLES, samples - at)})`,
    });
  }
}
