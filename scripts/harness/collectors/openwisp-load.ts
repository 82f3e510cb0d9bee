import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import type { Target } from "../client.ts";
import { until } from "../product.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { OpenWispDevice } from "./openwisp-device.ts";
import { PointOracle } from "./point-oracle.ts";

/** OpenWISP's agent reports. It keeps a report in a file and repeats it until the service acknowledges it. */

const INTERFACES = 400;
const POLL_MS = 1_000;
const SENT_WITHIN_MS = 300_000;

export async function startOpenWispAgent(target: Target, script: string): Promise<Workload> {
  const { client, dataDir } = target;
  const [apId, password] = [`collector-openwisp-${Date.now()}`, randomUUID()];
  const { token } = await makeUser(dataDir, `${apId}@example.com`, "none", ["admin"]);
  await client.call("/api/v1/agents/", { token, body: { ap_id: apId, password, configuration: {} } });
  const url = `${client.url}/api/v1/openwisp`;
  const device = new OpenWispDevice(script, { url, apId, password }, INTERFACES);
  const pointsPerReport = 1 + 2 * INTERFACES;

  const stop = new AbortController();
  let acknowledged = 0;
  const running = (async () => {
    for (; !stop.signal.aborted; await sleep(POLL_MS)) acknowledged = device.acknowledged * pointsPerReport;
    await device.stopCollecting();
    await until(() => device.isEmpty, SENT_WITHIN_MS, POLL_MS).catch(() => {});
    acknowledged = device.acknowledged * pointsPerReport;
  })();

  return createWorkload("OpenWISP's agent", stop, [running], {
    acknowledged: () => acknowledged,
    settle: async () => {
      const oracle = new PointOracle(target, apId);
      for (const { tsMs, points } of device.reports)
        for (const { metric, value } of points) oracle.record(apId, metric, tsMs, value);
      device.stop();
      return await oracle.compare();
    },
  });
}
