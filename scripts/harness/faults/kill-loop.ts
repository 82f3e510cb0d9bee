import { setTimeout as sleep } from "node:timers/promises";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import type { Target } from "../client.ts";
import { startCollectors } from "../collectors/collectors.ts";
import { startStreams } from "../stream-oracle.ts";
import { METRIC, sendTelemetry, startTelemetry } from "../telemetry-oracle.ts";
import { createWorkload, type Workload } from "../workload.ts";
import { startAlerts } from "./alert-load.ts";
import { startCommands } from "./command-load.ts";
import { COMPONENTS, type Component, type FaultTarget } from "./environment.ts";
import { kill, type Outcome, underLoad } from "./under-load.ts";

/** Kills a component again and again under one kind of workload. */

export interface KillSuite {
  description: string;
  components: readonly Component[];
  /** The default number of kills. */
  kills: number;
  /** Each workload continues until it has acknowledged so many operations. */
  each?: number;
  start(target: Target, component: Component): Promise<Workload[]>;
}

const PAUSE_MS = 20;

export const KILL_SUITES = {
  telemetry: {
    description: "Agents send over HTTP and MQTT",
    components: ["clickhouse", "broker", "bridge", "worker"],
    kills: 10,
    start: (target, component) => {
      const options = { prefix: `fault-${component}`, agents: 8, pauseMs: PAUSE_MS };
      return Promise.all([
        startTelemetry(target, { ...options, channel: "HTTP" }),
        startTelemetry(target, { ...options, channel: "MQTT" }),
        ...(component === "worker" ? [] : [startAccountReads(target)]),
      ]);
    },
  },
  jobs: {
    description: "Callbacks are posted and read through sockets",
    components: ["worker"],
    kills: 20,
    start: async ({ client, dataDir }) => {
      const { token } = await makeUser(dataDir, `faults-jobs-${Date.now()}@example.com`);
      return [startStreams(client, { token, readersOfJobs: [1, 1, 3, 4], sendersPerJob: 4, pauseMs: PAUSE_MS })];
    },
  },
  commands: {
    description: "Access points are spun up and receive commands",
    components: ["broker"],
    kills: 10,
    start: async (target) => [await startCommands(target, { accessPoints: 20, pauseMs: 200, spinUpEveryMs: 5_000 })],
  },
  alerts: {
    description: "Alerts fire and end, and an unreliable webhook receives them",
    components: ["worker", "sqld", "clickhouse", "broker", "bridge"],
    kills: 50,
    start: async (target) => [await startAlerts(target, { agents: 8, pauseMs: 500 })],
  },
  collectors: {
    description:
      "Unmodified clients send points: OpenTelemetry, InfluxDB, Prometheus, icinga2, Telegraf, OpenWISP's agent",
    components: COMPONENTS,
    kills: 10,
    each: 100_000,
    start: startCollectors,
  },
} satisfies Record<string, KillSuite>;

/** The workloads of a suite are too heavy for a guarantee about response times. */
export const killUnderLoad = (
  at: FaultTarget,
  { start }: Pick<KillSuite, "start">,
  component: Component,
  options: { times: number; atLeastEach?: number | undefined; signal?: AbortSignal },
): Promise<Outcome> =>
  underLoad(
    at,
    { ...kill(at, component), isPrompt: false },
    { ...options, start: (target) => start(target, component) },
  );

/** Reads an account continuously. The fault affects only telemetry, so no read may fail. */
async function startAccountReads(target: Target): Promise<Workload> {
  const [agent] = (await makeAgents(target.dataDir, `fault-watch-${Date.now()}`, 1)) as [TestAgent];
  return startReads(target, { name: "account reads", token: agent.token, path: `/api/v1/agents/${agent.apId}` });
}

const REPORTING_AGENTS = 22;
const REPORT_PAUSE_MS = 100;

/** Starts agents that send at least 200 reports per second, and a reader of a live chart. No request may fail. */
export async function startReporting(target: Target): Promise<Workload[]> {
  const prefix = `outage-${Date.now()}`;
  const agents = await makeAgents(target.dataDir, prefix, REPORTING_AGENTS);
  const [agent] = agents as [TestAgent];
  const path = `/api/v1/metrics/agent_multi_metric_data?agent=${agent.apId}&metrics=${METRIC}&window=1`;
  const hasPoints = (body: unknown) => (body as { series: unknown[] }).series.length > 0;
  return [
    sendTelemetry(target, agents, { prefix, channel: "HTTP", pauseMs: REPORT_PAUSE_MS, isEachAccepted: true }),
    startReads(target, { name: "charts", token: agent.token, path, isRight: hasPoints }),
  ];
}

interface ReadOptions {
  name: string;
  token: string;
  path: string;
  isRight?: (body: unknown) => boolean;
  pauseMs?: number;
}

/** Reads continuously. No read may fail. */
export function startReads(
  { client }: Target,
  { name, token, path, isRight = () => true, pauseMs = PAUSE_MS }: ReadOptions,
): Workload {
  const stop = new AbortController();
  let [acknowledged, failed] = [0, 0];
  const reading = (async () => {
    for (; !stop.signal.aborted; await sleep(pauseMs)) {
      const response = await client.attempt(path, { token });
      const isOk = response?.status === 200;
      if (isOk && isRight(response.body)) acknowledged++;
      // Before the first report a chart has no points.
      else if (!isOk || acknowledged > 0) failed++;
    }
  })();
  return createWorkload(name, stop, [reading], {
    acknowledged: () => acknowledged,
    settle: async () => ({ lost: 0, duplicates: 0, violations: { failed }, settledMs: 0 }),
  });
}
