import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { signalGroup } from "../../../src/programs/shared/system.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import type { Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { cleanUpAtExit, createCollector } from "./collector-account.ts";
import { startIcinga } from "./icinga.ts";
import { PointOracle } from "./point-oracle.ts";

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

  const folder = mkdtempSync(join(tmpdir(), "icinga2-"));
  const supervisor = new Supervisor();
  const cleanUp = cleanUpAtExit(() => {
    for (const pid of Object.values(supervisor.pids)) signalGroup(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  await startIcinga(supervisor, folder, { url: proxy.url, apIds, token: `${login.name}:${login.key}`, check: CHECK });

  const stop = new AbortController();
  const stopped = new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
  // When it ends, it writes the rest.
  const running = stopped.then(() => supervisor.stop());
  return createWorkload("icinga2", stop, [running], {
    acknowledged: () => oracle.recorded,
    settle: async () => {
      proxy.close();
      cleanUp();
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

/** Forwards requests to the service, and calls `record` with the lines of each one when its outcome is known. */
async function startRecordingProxy(url: string, record: (lines: string[], isAcknowledged: boolean) => void) {
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const { authorization = "", "content-type": type = "" } = request.headers;
    const headers = { Authorization: authorization, "Content-Type": type };
    const forwarded = await fetch(new URL(request.url ?? "", url), { method: "POST", headers, body }).catch(() => null);
    const answer = await forwarded?.text().catch(() => undefined);
    record(body.trim().split("\n"), forwarded?.status === 204);
    if (forwarded === null || answer === undefined) response.destroy();
    else response.writeHead(forwarded.status).end(answer);
  };
  const server = createServer((request, response) => void forward(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
