import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import { type ApiClient, type Target, targetOf } from "../client.ts";
import { type Product, until } from "../product.ts";
import { startStreams } from "../stream-oracle.ts";
import { startTelemetry } from "../telemetry-oracle.ts";
import { problemsOf, type Workload } from "../workload.ts";
import { startAccounts } from "./account-load.ts";
import { startCommands } from "./command-load.ts";
import type { Component, Disk, FaultEnvironment, Proxied } from "./environment.ts";
import type { NetworkFault } from "./faulty-proxy.ts";

/** Injects a fault while all workloads run, and checks what the service guarantees. */

/** The environment of a fault, or a plain product. */
export interface FaultTarget {
  product: Product;
  /** Returns a target for one round of workloads. */
  target(): Target;
  pidOf(component: Component): number;
}

export const plainTarget = (product: Product): FaultTarget => ({
  product,
  target: () => targetOf(product),
  pidOf: (component) => product.pidOf(component),
});

export interface Outcome {
  /** Operations that the service acknowledged. */
  acknowledged: number;
  lost: number;
  duplicates: number;
  /** From the end of the fault until the service is ready and all workloads progress. */
  recoveredMs: number;
  /** From the end of the workloads until everything is there. */
  settledMs: number;
  /** Violated guarantees. */
  violations: string[];
  remarks: string[];
}

export interface Fault<T extends FaultTarget> {
  /** The name of the affected component in /readyz, if it must report it. */
  readyzName?: string | undefined;
  begin(target: T): void;
  holdMs: number;
  end(target: T): void;
  /** A further condition of recovery. */
  isOver?(target: T): boolean;
  /** Nothing that was acknowledged is lost or duplicated. */
  isExact: boolean;
  /** Every response arrives within two seconds. */
  isPrompt: boolean;
}

const HOLD_MS = 8_000;

/** The components that /readyz reports, and their names there. */
const READYZ_NAMES: Partial<Record<Component, string>> = {
  sqld: "libsql",
  clickhouse: "clickhouse",
  broker: "broker",
  passwords: "passwords",
};

/** Kills a component, which its supervisor restarts. */
export function kill(component: Component): Fault<FaultTarget> {
  let pid = 0;
  return {
    holdMs: 0,
    begin: (target) => {
      pid = target.pidOf(component);
      process.kill(pid, "SIGKILL");
    },
    end: () => {},
    isOver: (target) => target.pidOf(component) !== pid,
    isExact: true,
    isPrompt: component !== "worker",
  };
}

/** Suspends a component for a while: its connections stay open without responses. */
export const suspend = (component: Component): Fault<FaultTarget> => ({
  readyzName: READYZ_NAMES[component],
  holdMs: HOLD_MS,
  begin: (target) => void process.kill(target.pidOf(component), "SIGSTOP"),
  end: (target) => void process.kill(target.pidOf(component), "SIGCONT"),
  isExact: true,
  isPrompt: component !== "worker",
});

export const network = (component: Proxied, fault: NetworkFault): Fault<FaultEnvironment> => ({
  readyzName: fault === "half-open" ? READYZ_NAMES[component] : undefined,
  holdMs: HOLD_MS,
  begin: ({ proxies }) => proxies[component].begin(fault),
  end: ({ proxies }) => proxies[component].end(),
  // A garbled digit in a request is a valid request, and so is a garbled sample on its way to the bridge. Only TLS detects them.
  isExact: fault !== "garbled requests" && !(fault === "garbled responses" && component === "broker"),
  isPrompt: component !== "worker" && fault !== "slow",
});

export const fullDisk = (disk: Disk): Fault<FaultEnvironment> => ({
  readyzName: disk === "worker" ? "objects" : READYZ_NAMES[disk],
  holdMs: HOLD_MS,
  begin: ({ disks }) => disks.get(disk)?.fill(),
  end: ({ disks }) => disks.get(disk)?.free(),
  isExact: true,
  isPrompt: true,
});

const STARTED_WITHIN_MS = 60_000;
const RECOVERED_WITHIN_MS = 120_000;
const POLL_MS = 100;
/** Two seconds are guaranteed; the machine, which runs everything, may add one. */
const PROMPT_MS = 3_000;
/** A component that dies five times within a minute ends the product, which is intended. */
const BETWEEN_FAULTS_MS = 15_500;

/** Starts tens of operations per second, few enough that the fault is the difficulty and not the load. */
async function startAll(target: Target): Promise<Workload[]> {
  const { token } = await makeUser(target.dataDir, `faults-jobs-${Date.now()}@example.com`);
  const telemetry = { prefix: "matrix", agents: 3, pauseMs: 100 };
  return await Promise.all([
    startTelemetry(target, { ...telemetry, channel: "HTTP" }),
    startTelemetry(target, { ...telemetry, channel: "MQTT" }),
    startStreams(target.client, { token, readersOfJobs: [1, 3], sendersPerJob: 2, pauseMs: 100 }),
    startCommands(target, { accessPoints: 20, pauseMs: 300, spinUpEveryMs: 10_000 }),
    startAccounts(target, { pauseMs: 200 }),
  ]);
}

export interface LoadedFaultOptions {
  signal?: AbortSignal;
  /** Starts other workloads than all of them. */
  start?: (target: Target) => Promise<Workload[]>;
  /** How often the fault is injected. */
  times?: number;
}

export async function underLoad<T extends FaultTarget>(
  at: T,
  fault: Fault<T>,
  { signal, start = startAll, times = 1 }: LoadedFaultOptions = {},
): Promise<Outcome> {
  const target = at.target();
  const { client } = target;
  const workloads = await start(target);
  await until(() => workloads.every(({ acknowledged }) => acknowledged > 0), STARTED_WITHIN_MS);
  client.reset();

  const readiness = watchReadiness(client);
  let recoveredMs = 0;
  let slowest = { ms: 0, path: "" };
  for (let time = 0; time < times; time++) {
    if (time > 0) await sleep(BETWEEN_FAULTS_MS);
    fault.begin(at);
    await sleep(fault.holdMs, undefined, signal && { signal }).catch(() => {});
    fault.end(at);
    const endedMs = performance.now();
    const marks = workloads.map(({ acknowledged }) => acknowledged);
    const stuck = () =>
      workloads.flatMap(({ acknowledged, name }, i) => (acknowledged <= (marks[i] ?? 0) ? [name] : []));
    slowest = client.slowest;
    const isRecovered = () => (fault.isOver?.(at) ?? true) && readiness.isReadySince(endedMs) && stuck().length === 0;
    await until(isRecovered, RECOVERED_WITHIN_MS).catch(() => {
      readiness.end();
      throw new NotRecovered(stuck(), at.product.isRunning);
    });
    recoveredMs = Math.max(recoveredMs, performance.now() - endedMs);
  }
  const reportedDown = readiness.end();
  // A kill lasts until the component is back.
  if (fault.holdMs === 0) slowest = client.slowest;
  const slowestS = (slowest.ms / 1000).toFixed(1);

  await Promise.all(workloads.map((workload) => workload.stop()));
  const stoppedMs = performance.now();
  const verdicts = await Promise.all(workloads.map(async ({ name, settle }) => ({ name, ...(await settle()) })));
  const settledMs = performance.now() - stoppedMs;

  const { isExact, isPrompt, readyzName } = fault;
  const bugs = client.statuses.get(500) ?? 0;
  const inexact = verdicts.flatMap((verdict) => problemsOf(verdict.name, verdict));
  const statuses = [...client.statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${n} × ${status}`);
  return {
    acknowledged: workloads.reduce((sum, { acknowledged }) => sum + acknowledged, 0),
    lost: verdicts.reduce((sum, { lost }) => sum + lost, 0),
    duplicates: verdicts.reduce((sum, { duplicates }) => sum + duplicates, 0),
    recoveredMs,
    settledMs,
    violations: [
      ...(isExact ? inexact : []),
      ...(isExact && bugs > 0 ? [`${bugs} responses with 500`] : []),
      ...(isPrompt && slowest.ms > PROMPT_MS ? [`${slowest.path} took ${slowestS} s`] : []),
      ...(readyzName !== undefined && !reportedDown.has(readyzName) ? [`/readyz did not report ${readyzName}`] : []),
    ],
    remarks: [
      ...(isExact ? [] : inexact),
      workloads.map(({ name, acknowledged }) => `${name} ${acknowledged}`).join(", "),
      `longest wait ${slowestS} s (${slowest.path})`,
      `responses ${statuses.join(", ")}; ${client.unanswered} requests without one`,
    ],
  };
}

/** The matrix ends here: all further rows would fail because of this one. */
export class NotRecovered extends Error {
  constructor(stuck: string[], isRunning: boolean) {
    const what = isRunning ? `still not: ${stuck.join(", ") || "ready"}` : "the product ended";
    super(`did not recover within ${RECOVERED_WITHIN_MS / 1000} s (${what})`);
  }
}

/** Polls /readyz. */
function watchReadiness(client: ApiClient) {
  const down = new Set<string>();
  let readyMs = Number.NEGATIVE_INFINITY;
  const stop = new AbortController();
  void (async () => {
    for (; !stop.signal.aborted; await sleep(POLL_MS)) {
      const sentMs = performance.now();
      const response = await client.attempt("/readyz");
      if (response?.status === 200) readyMs = sentMs;
      const { parts = {} } = (response?.body ?? {}) as { parts?: Record<string, string> };
      for (const [name, state] of Object.entries(parts)) if (state === "down") down.add(name);
    }
  })();
  return {
    isReadySince: (ms: number) => readyMs >= ms,
    /** Returns the components that were reported as down. */
    end(): ReadonlySet<string> {
      stop.abort();
      return down;
    },
  };
}
