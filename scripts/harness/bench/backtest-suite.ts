import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { seedSamples, selectRows } from "../clickhouse.ts";
import { median } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import type { BenchContext } from "./suite.ts";

/** Backtests of rules, next to the time that ClickHouse needs to add up the same rows. */

const MINUTE_MS = 60_000;
const MINUTES_PER_DAY = 1_440;
const RUNS = 3;

const LIMITS = { minutes: 2, samples: 20 } as const;
const RULES = {
  "a threshold with tolerance": {
    condition: { metric: "load", op: ">", value: 0.9 },
    for_s: 300,
    clear: { condition: { metric: "load", op: "<", value: 0.8 }, for_s: 120 },
  },
  "no report": { condition: { no_report_s: 600 } },
  "earlier days": { condition: { metric: "load", op: "<", baseline: { days: 7, factor: 0.5 } }, for_s: 600 },
};

export async function benchBacktests(context: BenchContext): Promise<void> {
  const { product, client, clickhouse, user, report, isQuick } = context;
  const [count, days] = isQuick ? [50, 2] : [1_000, 30];
  const [prefix, samples] = ["bench-backtest", days * MINUTES_PER_DAY];
  print(`Filling the store with ${count * samples} samples.`);
  await makeAgents(product.dataDir, prefix, count);
  const toMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const load = `0.5 + 0.45 * sin(intDiv(number, ${count}) / 230 + number % ${count})`;
  const seed = { agents: { prefix, count }, samples, stepMs: MINUTE_MS, toMs, metrics: { load } };
  await seedSamples(clickhouse, seed);

  const fromMs = toMs - (samples - 1) * MINUTE_MS;
  for (const resolution of ["minutes", "samples"] as const) {
    const [table, value] = resolution === "minutes" ? ["minutes_v1", "total"] : ["points_v1", "value"];
    const sumMs = await medianMs(() =>
      selectRows(clickhouse, `SELECT sum(${value}) FROM ${table} WHERE metric = 'load'`),
    );
    const rows = `${count} agents, ${days} days, ${resolution}`;
    report.add(`one metric summed by ClickHouse itself: ${rows}`, sumMs, "ms");
    for (const [name, rule] of Object.entries(RULES)) {
      // At this resolution, every report is needed: the limit for them is lower.
      if (name === "earlier days" && resolution === "samples") continue;
      const body = { rule, from: fromMs, to: toMs, resolution };
      const cpuPer = cpuOf(product, ["worker", "clickhouse"]);
      let total = 0;
      const ms = await medianMs(async () => {
        const path = "/api/v1/alerts/rules/test";
        ({ total } = await client.call<{ total: number }>(path, { token: user.token, body }));
      });
      const wanted = isQuick ? undefined : `at most ${LIMITS[resolution]} s`;
      const ratio = { of: "the sum", value: ms / sumMs, wanted };
      report.add(`backtest of ${name}: ${rows}`, ms, "ms", { alerts: total, ...cpuPer(RUNS) }, ratio);
    }
  }
}

async function medianMs(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    const startedMs = performance.now();
    await work();
    times.push(performance.now() - startedMs);
  }
  return median(times, (ms) => ms);
}
