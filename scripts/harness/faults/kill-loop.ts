import { setTimeout as sleep } from "node:timers/promises";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { ApiClient, type Target, targetOf } from "../client.ts";
import { type Product, until } from "../product.ts";
import { startStreams } from "../stream-oracle.ts";
import { startTelemetry } from "../telemetry-oracle.ts";
import { problemsOf, type Verdict, type Workload } from "../workload.ts";
import { startCommands } from "./command-load.ts";

/** Kills a component again and again under one kind of workload. */

export interface KillSuite {
  description: string;
  components: readonly string[];
  /** The default number of kills. */
  kills: number;
  /** The first workload must progress after each kill. */
  start(target: Target, component: string): Promise<Workload[]>;
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
} satisfies Record<string, KillSuite>;

export interface KillOutcome {
  verdicts: (Verdict & { name: string; acknowledged: number })[];
  problems: string[];
  /** For each kill, the time until the component is back, the service is ready and the workload progresses. */
  recoveredMs: number[];
}

const LOAD_BEFORE_KILL_MS = 500;
/** A component that dies five times within a minute ends the product, which is intended. */
const BETWEEN_KILLS_MS = 15_500;
const TIMEOUT_MS = 60_000;

export async function killUnderLoad(
  product: Product,
  { start }: Pick<KillSuite, "start">,
  component: string,
  kills: number,
): Promise<KillOutcome> {
  const workloads = await start(targetOf(product), component);
  const progress = () => workloads[0]?.acknowledged ?? 0;
  const recoveredMs: number[] = [];
  try {
    let startedMs = Number.NEGATIVE_INFINITY;
    for (let kill = 0; kill < kills; kill++) {
      await sleep(Math.max(LOAD_BEFORE_KILL_MS, startedMs + BETWEEN_KILLS_MS - performance.now()));
      const pid = product.pidOf(component);
      startedMs = performance.now();
      process.kill(pid, "SIGKILL");
      const before = progress();
      await until(async () => {
        if (product.pidOf(component) === pid || progress() <= before) return false;
        return (await new ApiClient(product.url).attempt("/readyz"))?.status === 200;
      }, TIMEOUT_MS);
      recoveredMs.push(performance.now() - startedMs);
    }
  } finally {
    await Promise.all(workloads.map((workload) => workload.stop()));
  }
  const verdicts = await Promise.all(
    workloads.map(async ({ name, acknowledged, settle }) => ({ name, acknowledged, ...(await settle()) })),
  );
  return { verdicts, problems: verdicts.flatMap((verdict) => problemsOf(verdict.name, verdict)), recoveredMs };
}

/** Reads an account continuously. Only telemetry is hit, so no read may fail. */
async function startAccountReads({ client, dataDir }: Target): Promise<Workload> {
  const [{ apId, token }] = (await makeAgents(dataDir, `fault-watch-${Date.now()}`, 1)) as [TestAgent];
  const stop = new AbortController();
  let [acknowledged, failed] = [0, 0];
  const reading = (async () => {
    for (; !stop.signal.aborted; await sleep(PAUSE_MS)) {
      const response = await client.attempt(`/api/v1/agents/${apId}`, { token });
      if (response?.status === 200) acknowledged++;
      else failed++;
    }
  })();
  return {
    name: "account reads",
    get acknowledged() {
      return acknowledged;
    },
    async stop() {
      stop.abort();
      await reading;
    },
    settle: async () => ({ lost: 0, duplicates: 0, violations: { failed }, settledMs: 0 }),
  };
}
