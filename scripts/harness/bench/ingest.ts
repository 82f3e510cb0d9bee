import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { clickhouseOf } from "../clickhouse.ts";
import type { BenchContext } from "./context.ts";
import { ingestOverHttp } from "./ingest-http.ts";
import { ingestOverMqtt } from "./ingest-mqtt.ts";
import { benchCharts } from "./live-charts.ts";

/** From the access point to the chart: what goes in, what comes out, and what either costs as the data grows. */

/** Agents that have a report under way at the same time. An insert costs the same for one as for many of them. */
const REPORTING = 2_000;
const PUBLISHING = 50;

export async function benchTelemetry(context: BenchContext): Promise<void> {
  const { product, isQuick } = context;
  const sizes = isQuick ? [10, 100] : [10, 100, 1_000, 10_000];
  const most = sizes.at(-1) ?? 0;
  const clickhouse = clickhouseOf(product);
  print(`Making ${most} agents.`);
  const agents = await makeAgents(product.dataDir, "bench", most);
  await ingestOverHttp(context, agents.slice(0, REPORTING));
  await ingestOverMqtt(context, agents.slice(0, PUBLISHING), clickhouse);
  await benchCharts(context, agents, sizes, clickhouse);
  await clickhouse.close();
}
