import { makeAgents } from "../accounts.ts";
import { forEachConcurrently } from "../stats.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { untilIdle } from "../usage.ts";
import type { LoadOptions } from "./load.ts";
import { type BenchContext, CONNECTIONS, inTurns, load } from "./suite.ts";

/** Points in the protocols of other systems, 1,000 in a request, next to reports of one point each. */

const POINTS = 1_000;
/** Older samples arrive out of order, which costs more. */
const SPAN_MS = 1_000_000;

type Body = (fromMs: number) => string;

const lines: Body = (fromMs) => Array.from({ length: POINTS }, (_, i) => `bench value=${i} ${fromMs + i}`).join("\n");

const otlp: Body = (fromMs) => {
  const dataPoints = Array.from({ length: POINTS }, (_, i) => ({ timeUnixNano: `${fromMs + i}000000`, asDouble: i }));
  const metrics = [{ name: "bench", gauge: { dataPoints } }];
  return JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
};

export async function benchCollectors(context: BenchContext): Promise<void> {
  const { product, client, report } = context;
  const agents = await makeAgents(product.dataDir, "bench-collectors", CONNECTIONS);
  // The first request with a token costs more, since the service looks up its account.
  await forEachConcurrently(agents, async ({ token }) => {
    await client.request(UPDATE_PATH, { token, body: { payload: { n: 0 } } });
  });
  // Each request has times of its own.
  let nextMs = Date.now() - SPAN_MS;
  const reports = (connection: number, i: number) => ({
    path: UPDATE_PATH,
    token: agents[connection]?.token,
    body: JSON.stringify({ ts: nextMs + i, payload: { n: i } }),
  });
  const many = (path: string, body: Body) => (connection: number) => {
    nextMs += POINTS;
    return { path, token: agents[connection]?.token, body: body(nextMs - SPAN_MS) };
  };
  const { single, ...others } = await inTurns(
    {
      single: () => measure(context, reports, 1),
      "lines of InfluxDB": () => measure(context, many("/api/v1/influx/write?precision=ms", lines), POINTS),
      "OTLP as JSON": () => measure(context, many("/api/v1/otlp/v1/metrics", otlp), POINTS),
    },
    ({ pointsPerSecond }) => pointsPerSecond,
  );
  report.add(`reports of one point, ${CONNECTIONS} at a time`, single.pointsPerSecond, "points/s", single.details);
  for (const [name, { pointsPerSecond, details }] of Object.entries(others)) {
    const ratio = { of: "single reports", value: pointsPerSecond / single.pointsPerSecond, wanted: "at least 10" };
    report.add(`${name}, ${POINTS} points in a request`, pointsPerSecond, "points/s", details, ratio);
  }
}

const CONNECTIONS_OF_MANY = 4;

async function measure(context: BenchContext, next: LoadOptions["next"], points: number) {
  const connections = points === 1 ? CONNECTIONS : CONNECTIONS_OF_MANY;
  const result = await load(context, next, { connections, components: ["worker", "clickhouse"] });
  if (!result.isFlawless) context.report.require("every request succeeds", false, result.details);
  // The next load begins with an empty journal.
  await untilIdle(context.product.pidOf("clickhouse"));
  return { ...result, pointsPerSecond: points * result.perSecond };
}
