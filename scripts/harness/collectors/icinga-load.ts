import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import type { Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { createCollector, createProgramHome } from "./collector-account.ts";
import { startIcinga } from "./icinga.ts";
import { PointOracle } from "./point-oracle.ts";
import { startRecordingProxy } from "./recording-proxy.ts";

/**
 * Debian's icinga2 writes the values of its checks. It discards what it cannot send, so a proxy between it and the service keeps the record:
 * which values the service acknowledged, and which got no success and may or may not be stored.
 */

const HOSTS = 4;
const VALUES = 250;
/** A value is the second of its check times this, plus its own number. */
const FACTOR = 1_000;
const CHECK = `#!/bin/sh
s=$(( $(date +%s) % 100000 ))
awk -v s="$s" 'BEGIN { printf "OK |"; for (i = 0; i < ${VALUES}; i++) printf " v%d=%d", i, s * ${FACTOR} + i; print "" }'
`;
const LINE = /^values,hostname=([^,]+),service=radio,metric=v(\d+) value=([\d.e+-]+) (\d+)$/;

export async function startIcingaWrites(target: Target): Promise<Workload> {
  const { prefix, apIds, login } = await createCollector(target, "icinga2", HOSTS, { agent_label: "hostname" });
  const oracle = new PointOracle(target, prefix);
  let different = 0;
  const proxy = await startRecordingProxy(target.client.url, (lines, isAcknowledged) => {
    for (const line of lines) {
      const point = parseLine(line);
      if (point === undefined) different++;
      else if (isAcknowledged) oracle.record(...point);
      else oracle.allow(...point);
    }
  });

  const { folder, supervisor, remove } = createProgramHome("icinga2");
  await startIcinga(supervisor, folder, { url: proxy.url, apIds, token: `${login.name}:${login.key}`, check: CHECK });

  const stop = new AbortController();
  const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
  // When it ends, it writes the rest.
  const running = stopped.then(() => supervisor.stop());
  return createWorkload("icinga2", stop, [running], {
    acknowledged: () => oracle.recorded,
    settle: async () => {
      proxy.close();
      remove();
      const { violations, ...verdict } = await oracle.compare();
      return { ...verdict, violations: { ...violations, "unlike the check's": different } };
    },
  });
}

/** Returns the point of a line. Undefined if it is not one that the check has printed. */
function parseLine(line: string): Parameters<PointOracle["record"]> | undefined {
  const [, apId = "", number = "", value, timeS] = LINE.exec(line) ?? [];
  if (Number(value) % FACTOR !== Number(number)) return undefined;
  const metric = formatMetricName("values.value", { metric: `v${number}`, service: "radio" });
  return [apId, metric, Number(timeS) * 1_000, Number(value)];
}
