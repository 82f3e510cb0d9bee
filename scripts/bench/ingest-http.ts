import type { TrialAgent } from "../trial/accounts.ts";
import { inLanes } from "../trial/lanes.ts";
import { type LoadResult, load } from "../trial/load.ts";
import type { BenchContext } from "./context.ts";
import { fields, latencies } from "./samples.ts";
import { measureBareHono } from "./service.ts";
import { cpuOf } from "./usage.ts";

/** Next to a bare route that takes the same reports over as many connections; a `GET` of nothing is told besides. */
export async function ingestOverHttp(context: BenchContext, agents: readonly TrialAgent[]): Promise<void> {
  const { product, bareUrl, seconds, report } = context;
  const reports = (url: string, path: string): Promise<LoadResult> =>
    load({
      url,
      seconds,
      connections: agents.length,
      next: (connection, i) => ({
        method: "POST",
        path,
        token: (agents[connection] as TrialAgent).token,
        body: JSON.stringify({ ts: Date.now(), payload: fields("field", i) }),
      }),
    });
  const path = "/api/v1/agent_update/update";
  // The first report of each shows its token for the first time, which is another matter.
  await inLanes(agents, async ({ token }) => {
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
  await reports(product.url, path);
  const cpu = cpuOf(product, ["worker", "clickhouse"]);
  const result = await reports(product.url, path);
  report.add({
    what: `ingest over HTTP: single samples of 10 fields, ${agents.length} agents at a time`,
    value: result.perSecond,
    unit: "samples/s",
    ratio: { of: "bare Hono", value: result.perSecond / floor.perSecond, wanted: "at least 0.35" },
    details: { ...latencies(result), ...cpu.per(result.count), "next to a bare GET": result.perSecond / bareRate },
  });
}
