import type { TestAgent } from "../accounts.ts";
import { forEachConcurrently } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadResult } from "../workload.ts";
import type { BenchContext } from "./context.ts";
import type { Growth } from "./report.ts";
import { measureBareHono } from "./requests.ts";
import { fields, latencies } from "./samples.ts";

/** Next to a bare route that takes the same reports over as many connections; a `GET` of nothing is told besides. */
export async function ingestOverHttp(context: BenchContext, agents: readonly TestAgent[]): Promise<void> {
  const { product, bareUrl, seconds, report } = context;
  const reports = (url: string, path: string, connections = agents.length): Promise<LoadResult> =>
    generateLoad({
      url,
      seconds,
      connections,
      next: (connection, i) => ({
        method: "POST",
        path,
        token: (agents[connection] as TestAgent).token,
        body: JSON.stringify({ ts: Date.now(), payload: fields("field", i) }),
      }),
    });
  const path = "/api/v1/agent_update/update";
  // The first report of each shows its token for the first time, which is another matter.
  await forEachConcurrently(agents, async ({ token }) => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const body = JSON.stringify({ payload: fields("field", 0) });
    await (await fetch(`${product.url}${path}`, { method: "POST", headers, body })).arrayBuffer();
  });
  const bareRate = await measureBareHono(context);
  const floor = await reports(bareUrl, "/report");
  report.add({
    what: `bare Hono route that takes the same reports, ${agents.length} at a time`,
    value: floor.perSecond,
    unit: "/s",
    details: latencies(floor),
  });
  for (const count of [agents.length / 100, agents.length / 10].map(Math.ceil)) {
    const { perSecond, p50Ms, p99Ms } = await reports(product.url, path, count);
    report.add({
      what: `ingest over HTTP, ${count} agents at a time`,
      value: perSecond,
      unit: "samples/s",
      details: { "p50 ms": p50Ms, "p99 ms": p99Ms },
      growth: growth(count, perSecond),
    });
  }
  // Once for nothing: V8 has seen the code by then.
  await reports(product.url, path);
  const cpu = cpuOf(product, ["worker", "clickhouse"]);
  const result = await reports(product.url, path);
  report.add({
    id: "ingest-http",
    what: `ingest over HTTP: single samples of 10 fields, ${agents.length} agents at a time`,
    value: result.perSecond,
    unit: "samples/s",
    ratio: { of: "bare Hono", value: result.perSecond / floor.perSecond, wanted: "at least 0.35" },
    details: { ...latencies(result), ...cpu.per(result.count), "next to a bare GET": result.perSecond / bareRate },
    growth: growth(agents.length, result.perSecond),
  });
}

const growth = (x: number, y: number): Growth => ({
  curve: "Reports over HTTP",
  x,
  of: "agents that report at the same time",
  y,
  unit: "a second",
});
