import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { print } from "../../../src/programs/shared/cli.ts";
import type { Target } from "../client.ts";
import type { Workload } from "../workload.ts";
import { type ClientKind, startClient } from "./client-load.ts";
import { icingaIsMissing } from "./icinga.ts";
import { startIcingaWrites } from "./icinga-load.ts";
import { getOpenWispScript } from "./openwisp-device.ts";
import { startOpenWispAgent } from "./openwisp-load.ts";
import { prometheusIsMissing, startPrometheusWrites } from "./prometheus-load.ts";
import { telegrafIsMissing } from "./telegraf.ts";
import { startTelegrafWrites } from "./telegraf-load.ts";

const CLIENTS: ClientKind[] = ["OTLP JSON", "OTLP protobuf", "InfluxDB"];

/** Starts all unmodified clients of other systems that can run here, and says which cannot. */
export async function startCollectors(target: Target): Promise<Workload[]> {
  const folder = mkdtempSync(join(tmpdir(), "openwisp-script-"));
  try {
    const script = await getOpenWispScript(folder);
    if ("missing" in script) print(`  OpenWISP's agent is skipped: ${script.missing}`);
    const programs = [
      { name: "Prometheus", missing: prometheusIsMissing(), start: startPrometheusWrites },
      { name: "icinga2", missing: icingaIsMissing(), start: startIcingaWrites },
      { name: "Telegraf", missing: telegrafIsMissing(), start: startTelegrafWrites },
    ];
    for (const { name, missing } of programs) if (missing !== undefined) print(`  ${name} is skipped: ${missing}`);
    return await Promise.all([
      ...CLIENTS.map((kind) => startClient(target, kind)),
      ...programs.filter(({ missing }) => missing === undefined).map(({ start }) => start(target)),
      ...("path" in script ? [startOpenWispAgent(target, script.path)] : []),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
