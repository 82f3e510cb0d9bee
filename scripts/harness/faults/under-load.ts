import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import { type ApiClient, type Target, targetOf } from "../client.ts";
import { type Product, until } from "../product.ts";
import { startStreams } from "../stream-oracle.ts";
import { startTelemetry } from "../telemetry-oracle.ts";
import { problemsOf, type Workload } from "../workload.ts";
import { startAccounts } from "./account-load.ts";
import { startCommands } from "./command-load.ts";
import type { Component, Disk, FaultEnvironment, FaultTarget, Proxied } from "./environment.ts";
import type { NetworkFault } from "./faulty-proxy.ts";

/** Injects a fault while all workloads run, and checks what the service guarantees. */

export const plainTarget = (product: Product): FaultTarget => ({
  product,
  target: () => targetOf(product),
  pidOf: (component) => product.pidOf(component),
});

export interface Outcome {
  /** Operations that the service acknowledged. */
  acknowledged: number;
  /** The same by kind, if there are several. */
  kinds?: Record<string, number>;
  lost: number;
  duplicates: number;
  /** From the end of the fault until the service is ready and all workloads progress. */
  recoveredMs?: number;
  /** From the end of the workloads until everything is there. */
  settledMs: number;
  /** Violated guarantees. */
  violations: string[];
  remarks: string[];
}

export interface Fault {
  /** The name of the affected component in /readyz, if it must report it. */
  readyzName?: string | undefined;
  begin(): void;
  holdMs: number;
  end(): void;
  /** A further condition of recovery. */
  isOver?(): boolean;
  /** Nothing that was acknowledged is lost or duplicated. */
  isExact: boolean;
  /** Every response arrives within two seconds. */
  isPrompt: boolean;
}

/** A fault that lasts for a while, after which all guarantees hold. */
export const HELD = { holdMs: 8_000, isExact: true, isPrompt: true } as const;

const REPORTED: readonly Component[] = ["clickhouse", "broker", "passwords"];
/** Returns the name of a component in /readyz, if it is reported there. */
const readyzNameOf = (component: Component): string | undefined =>
  component === "sqld" ? "libsql" : REPORTED.find((name) => name === component);

/** Kills a component, which its supervisor restarts. */
export function kill(at: FaultTarget, component: Component): Fault {
  let pid = 0;
  return {
    holdMs: 0,
    begin: () => {
      pid = at.pidOf(component);
      process.kill(pid, "SIGKILL");
    },
    end: () => {},
    isOver: () => at.pidOf(component) !== pid,
    isExact: true,
    isPrompt: component !== "worker",
  };
}

/** Suspends a component for a while: its connections stay open without responses. */
export const suspend = (at: FaultTarget, component: Component): Fault => ({
  ...HELD,
  readyzName: readyzNameOf(component),
  begin: () => void process.kill(at.pidOf(component), "SIGSTOP"),
  end: () => void process.kill(at.pidOf(component), "SIGCONT"),
  isPrompt: component !== "worker",
});

export const network = ({ proxies }: FaultEnvironment, component: Proxied, fault: NetworkFault): Fault => ({
  ...HELD,
  readyzName: fault === "half-open" ? readyzNameOf(component) : undefined,
  begin: () => proxies[component].begin(fault),
  end: () => proxies[component].end(),
  // A garbled digit in a request is a valid request, and so is a garbled sample on its way to the bridge. Only TLS detects them.
  isExact: fault !== "garbled requests" && !(fault === "garbled responses" && component === "broker"),
  isPrompt: component !== "worker" && fault !== "slow",
});

export const fullDisk = ({ disks }: FaultEnvironment, disk: Disk): Fault => ({
  ...HELD,
  readyzName: disk === "worker" ? "objects" : readyzNameOf(disk),
  begin: () => disks.get(disk)?.fill(),
  end: () => disks.get(disk)?.free(),
});

const STARTED_WITHIN_MS = 60_000;
const RECOVERED_WITHIN_MS = 120_000;
const POLL_MS = 100;
/** Two seconds are guaranteed; the machine, which runs everything, may add one. */
const PROMPT_MS = 3_000;
/** A component that dies five times within a minute ends the product, which is intended. */
const BETWEEN_FAULTS_MS = 15_500;

/** A row of the matrix proves little if the service acknowledges fewer operations than this. */
export const ENOUGH = 2_000;
/** The wait for enough operations ends if this time brings none. */
const ACKNOWLEDGED_WITHIN_MS = 180_000;

/** Starts more than a hundred operations per second, few enough that the fault is the difficulty and not the load. */
async function startAll(target: Target): Promise<Workload[]> {
  const { token } = await makeUser(target.dataDir, `faults-jobs-${Date.now()}@example.com`);
  const telemetry = { prefix: "matrix", agents: 5, pauseMs: 100 };
  return await Promise.all([
    startTelemetry(target, { ...telemetry, channel: "HTTP" }),
    startTelemetry(target, { ...telemetry, channel: "MQTT" }),
    startStreams(target.client, { token, readersOfJobs: [1, 3], sendersPerJob: 2, pauseMs: 100 }),
    startCommands(target, { accessPoints: 20, pauseMs: 300, spinUpEveryMs: 10_000 }),
    startAccounts(target, { pauseMs: 200 }),
  ]);
}

interface LoadOptions {
  signal?: AbortSignal;
  /** Starts other workloads than all of them. */
  start?: (target: Target) => Promise<Workload[]>;
  /** How often the fault is injected. */
  times?: number;
  /** The workloads continue until they have acknowledged so many operations. */
  atLeast?: number;
  /** The workloads continue until each of them has acknowledged so many operations. */
  atLeastEach?: number | undefined;
}

/** Starts workloads. Returns them when each has acknowledged something, with a function that ends them, and one that also compares. */
async function startLoad(target: Target, { signal, start = startAll, atLeast = 0, atLeastEach = 0 }: LoadOptions) {
  const workloads = await start(target);
  const idle = () => workloads.filter(({ acknowledged }) => acknowledged <= 0);
  await until(() => idle().length === 0, STARTED_WITHIN_MS).catch(() => {
    const names = idle().map(({ name }) => name);
    throw new Error(`nothing acknowledged within ${STARTED_WITHIN_MS / 1000} s: ${names.join(", ")}`);
  });
  target.client.reset();
  const total = () => workloads.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  const missing = () =>
    workloads.reduce((sum, load) => sum + Math.max(0, atLeastEach - load.acknowledged), Math.max(0, atLeast - total()));

  const stop = () => Promise.all(workloads.map((workload) => workload.stop()));
  const finish = async () => {
    for (let least = missing(), sinceMs = performance.now(); missing() > 0 && signal?.aborted !== true; ) {
      await sleep(POLL_MS);
      if (missing() < least) [least, sinceMs] = [missing(), performance.now()];
      if (performance.now() - sinceMs > ACKNOWLEDGED_WITHIN_MS) break;
    }
    await stop();
    const stoppedMs = performance.now();
    const settling = workloads.map(async (load) => {
      const verdict = await load.settle();
      return { name: load.name, acknowledged: load.acknowledged, ...verdict };
    });
    const verdicts = await Promise.all(settling);
    const acknowledged = total();
    const bugs = target.client.statuses.get(500) ?? 0;
    return {
      acknowledged,
      kinds: Object.fromEntries(verdicts.map((verdict) => [verdict.name, verdict.acknowledged])),
      lost: verdicts.reduce((sum, { lost }) => sum + lost, 0),
      duplicates: verdicts.reduce((sum, { duplicates }) => sum + duplicates, 0),
      settledMs: performance.now() - stoppedMs,
      inexact: [
        ...verdicts.flatMap((verdict) => problemsOf(verdict.name, verdict)),
        ...(bugs > 0 ? [`${bugs} responses with 500`] : []),
      ],
      tooFew: missing() > 0 ? [`only ${acknowledged} operations were acknowledged`] : [],
    };
  };
  return { workloads, stop, finish };
}

/** Runs a row of another kind while all workloads run. Nothing that either acknowledges is lost or duplicated. */
export async function besideLoad(
  at: FaultEnvironment,
  run: (environment: FaultEnvironment, signal: AbortSignal) => Promise<Outcome>,
  signal: AbortSignal,
): Promise<Outcome> {
  const { stop, finish } = await startLoad(at.target(), { signal, atLeast: ENOUGH });
  const {
    kinds: ownKinds,
    violations,
    remarks,
    ...own
  } = await run(at, signal).catch(async (error: unknown) => {
    // The next row starts workloads of its own.
    await stop();
    throw error;
  });
  const { inexact, tooFew, kinds, ...load } = await finish();
  return {
    ...own,
    acknowledged: own.acknowledged + load.acknowledged,
    kinds: { ...(ownKinds ?? { "of the row itself": own.acknowledged }), ...kinds },
    lost: own.lost + load.lost,
    duplicates: own.duplicates + load.duplicates,
    settledMs: Math.max(own.settledMs, load.settledMs),
    violations: [...violations, ...inexact, ...tooFew],
    remarks,
  };
}

export async function underLoad(at: FaultTarget, fault: Fault, options: LoadOptions = {}): Promise<Outcome> {
  const { signal, times = 1 } = options;
  const target = at.target();
  const { client } = target;
  const { workloads, finish } = await startLoad(target, options);

  const watch = new AbortController();
  const readiness = watchReadiness(client, watch.signal);
  let recoveredMs = 0;
  let { slowest } = client;
  try {
    for (let time = 0; time < times; time++) {
      if (time > 0) await sleep(BETWEEN_FAULTS_MS);
      fault.begin();
      await sleep(fault.holdMs, undefined, signal && { signal }).catch(() => {});
      fault.end();
      const endedMs = performance.now();
      ({ slowest } = client);
      const before = workloads.map(({ acknowledged }) => acknowledged);
      const stuck = () => workloads.filter(({ acknowledged }, i) => acknowledged <= (before[i] ?? 0));
      const isRecovered = () => (fault.isOver?.() ?? true) && readiness.readyMs >= endedMs && stuck().length === 0;
      await until(isRecovered, RECOVERED_WITHIN_MS).catch(() => {
        throw new NotRecovered(stuck(), at.product.isRunning);
      });
      recoveredMs = Math.max(recoveredMs, performance.now() - endedMs);
      // A kill lasts until the component is back.
      if (fault.holdMs === 0) ({ slowest } = client);
    }
  } finally {
    watch.abort();
  }

  const { inexact, tooFew, ...load } = await finish();
  const { isExact, isPrompt, readyzName } = fault;
  const slowestS = (slowest.ms / 1000).toFixed(1);
  const statuses = [...client.statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${n} × ${status}`);
  return {
    ...load,
    recoveredMs,
    violations: [
      ...(isExact ? [...inexact, ...tooFew] : []),
      ...(isPrompt && slowest.ms > PROMPT_MS ? [`${slowest.path} took ${slowestS} s`] : []),
      ...(readyzName && !readiness.down.has(readyzName) ? [`/readyz did not report ${readyzName}`] : []),
    ],
    remarks: [
      ...(isExact ? [] : inexact),
      `longest wait ${slowestS} s (${slowest.path})`,
      `responses ${statuses.join(", ")}; ${client.unanswered} requests without one`,
    ],
  };
}

/** The matrix ends here: all further rows would fail because of this one. */
export class NotRecovered extends Error {
  constructor(stuck: readonly Workload[], isRunning: boolean) {
    const names = stuck.map(({ name }) => name).join(", ") || "ready";
    const what = isRunning ? `still not: ${names}` : "the product ended";
    super(`did not recover within ${RECOVERED_WITHIN_MS / 1000} s (${what})`);
  }
}

/** Polls /readyz. Returns when it last reported that all is well, and the components that it reported as down. */
function watchReadiness(client: ApiClient, signal: AbortSignal): { readyMs: number; down: ReadonlySet<string> } {
  const down = new Set<string>();
  const readiness = { readyMs: Number.NEGATIVE_INFINITY, down };
  void (async () => {
    for (; !signal.aborted; await sleep(POLL_MS)) {
      const sentMs = performance.now();
      const response = await client.attempt("/readyz");
      if (response?.status === 200) readiness.readyMs = sentMs;
      const { parts = {} } = (response?.body ?? {}) as { parts?: Record<string, string> };
      for (const [name, state] of Object.entries(parts)) if (state === "down") down.add(name);
    }
  })();
  return readiness;
}

const RESTARTED_WITHIN_MS = 110_000;

/**
 * Returns a kill of a process that its supervisor restarts.
 * @param killNow returns a function that tells whether the process is back
 */
export function killUntilBack(killNow: () => () => Promise<boolean>): Fault {
  let isBack = false;
  return {
    holdMs: 0,
    begin() {
      isBack = false;
      void until(killNow(), RESTARTED_WITHIN_MS).then(
        () => {
          isBack = true;
        },
        () => {},
      );
    },
    end: () => {},
    isOver: () => isBack,
    isExact: true,
    isPrompt: false,
  };
}
