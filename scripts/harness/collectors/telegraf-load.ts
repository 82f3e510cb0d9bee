import type { Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { createCollector, createProgramHome } from "./collector-account.ts";
import { PointOracle } from "./point-oracle.ts";
import { startRecordingProxy } from "./recording-proxy.ts";
import { pointsOf, startTelegraf } from "./telegraf.ts";

/**
 * Telegraf writes the values of this machine. It keeps what was not acknowledged, and writes it again. Its own record is the one to compare
 * with; a proxy between it and the service counts the acknowledged values.
 */

/** So many that it sends 100,000 values in a few minutes. */
const MEMORY_INPUTS = 12;

export async function startTelegrafWrites(target: Target): Promise<Workload> {
  const { prefix, apIds, login } = await createCollector(target, "Telegraf", 1);
  const [apId = ""] = apIds;
  let acknowledged = 0;
  const proxy = await startRecordingProxy(target.client.url, (lines, isAcknowledged) => {
    if (isAcknowledged) acknowledged += lines.flatMap(pointsOf).length;
  });
  const { folder, supervisor, remove } = createProgramHome("telegraf");
  const url = `${proxy.url}/api/v1/influx`;
  const options = { url, apId, token: `${login.name}:${login.key}`, memoryInputs: MEMORY_INPUTS };
  const record = await startTelegraf(supervisor, folder, options);

  const stop = new AbortController();
  const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
  // When it ends, it writes the rest.
  const running = stopped.then(() => supervisor.stop());
  return createWorkload("Telegraf", stop, [running], {
    acknowledged: () => acknowledged,
    settle: async () => {
      proxy.close();
      const oracle = new PointOracle(target, prefix);
      for (const point of record()) oracle.record(apId, ...point);
      remove();
      return await oracle.compare();
    },
  });
}
