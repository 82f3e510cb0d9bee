import { setTimeout as sleep } from "node:timers/promises";
import { type Product, until } from "../product.ts";
import type { Target } from "../target.ts";
import { watchShortage } from "../usage.ts";
import { startAccounts } from "./loads/account-load.ts";
import { startCommands } from "./loads/command-load.ts";
import { startJobs } from "./loads/job-load.ts";
import type { Load } from "./loads/load.ts";
import { startTelemetry } from "./loads/telemetry-load.ts";
import type { Outcome } from "./row.ts";

/** Lets something go wrong while everything that the service does is done at once, and holds it to its word. */

/** What it is all done on. */
export interface Stage {
  product: Product;
  /** For one round of loads. */
  target(): Target;
}

export interface Fault<S extends Stage> {
  /** What /readyz calls the part that is hit, where it knows it. */
  readyzName?: string | undefined;
  begin(stage: S): void;
  /** How long it lasts. */
  holdMs: number;
  end(stage: S): void;
  /** What must be so besides, for it to be over. */
  isOver?(stage: S): boolean;
  promises: {
    /** Nothing that was acknowledged is lost or doubled. */
    exact: boolean;
    /** Every answer comes within two seconds, and those that cannot be given are 503. */
    prompt: boolean;
  };
}

const GETS_ON_WITHIN_MS = 60_000;
const RECOVERED_WITHIN_MS = 120_000;
const POLL_MS = 100;
/** Two seconds is the promise; a machine that runs all of this at once may add some. */
const PROMPT_MS = 3_000;

/** Tens of operations a second together: the fault is to be what is hard. */
const startLoads = (target: Target): Promise<Load[]> => {
  const telemetry = { prefix: "matrix", agents: 3, pauseMs: 100 };
  return Promise.all([
    startTelemetry(target, { ...telemetry, channel: "HTTP" }),
    startTelemetry(target, { ...telemetry, channel: "MQTT" }),
    startJobs(target, { readersOfJobs: [1, 3], sendersPerJob: 2, pauseMs: 100 }),
    startCommands(target, { accessPoints: 20, pauseMs: 300, spinUpEveryMs: 10_000 }),
    startAccounts(target, { pauseMs: 200 }),
  ]);
};

export async function underLoad<S extends Stage>(stage: S, fault: Fault<S>, signal?: AbortSignal): Promise<Outcome> {
  const target = stage.target();
  const loads = await startLoads(target);
  await until(() => loads.every(({ acknowledged }) => acknowledged > 0), GETS_ON_WITHIN_MS);
  target.forget();

  const readiness = watchReadiness(target);
  const shortage = watchShortage();
  fault.begin(stage);
  await sleep(fault.holdMs, undefined, signal && { signal }).catch(() => {});
  fault.end(stage);
  const endedMs = performance.now();
  const marks = loads.map(({ acknowledged }) => acknowledged);
  const slowestMeanwhile = target.slowest;
  const late = () => loads.filter(({ acknowledged }, i) => acknowledged <= (marks[i] ?? 0)).map(({ name }) => name);
  const isRecovered = await until(
    () => (fault.isOver?.(stage) ?? true) && readiness.isReadySince(endedMs) && late().length === 0,
    RECOVERED_WITHIN_MS,
  ).then(
    () => true,
    () => false,
  );
  const recoveredMs = isRecovered ? performance.now() - endedMs : undefined;
  const seenDown = readiness.end();
  const short = shortage.end();
  // A kill lasts until the part is back.
  const slowest = fault.holdMs === 0 ? target.slowest : slowestMeanwhile;
  if (recoveredMs === undefined) throw new NotRecovered(late(), stage.product.isRunning);

  await Promise.all(loads.map((load) => load.stop()));
  const stoppedMs = performance.now();
  const verdicts = await Promise.all(loads.map(async (load) => ({ load, ...(await load.settle()) })));
  const settledMs = performance.now() - stoppedMs;

  const { exact, prompt } = fault.promises;
  const bugs = target.statuses.get(500) ?? 0;
  const inexact = verdicts.flatMap(({ load, lost, doubled, faults }) =>
    Object.entries({ lost, doubled, ...faults }).flatMap(([what, n]) => (n > 0 ? [`${load.name}: ${n} ${what}`] : [])),
  );
  const { readyzName } = fault;
  return {
    acknowledged: loads.reduce((sum, { acknowledged }) => sum + acknowledged, 0),
    lost: verdicts.reduce((sum, { lost }) => sum + lost, 0),
    doubled: verdicts.reduce((sum, { doubled }) => sum + doubled, 0),
    recoveredMs,
    settledMs,
    broken: [
      ...(exact ? inexact : []),
      ...(exact && bugs > 0 ? [`${bugs} answers with 500`] : []),
      ...(prompt && slowest.ms > PROMPT_MS
        ? [`${slowest.path} was waited for ${(slowest.ms / 1000).toFixed(1)} s`]
        : []),
      ...(readyzName !== undefined && !seenDown.has(readyzName) ? [`/readyz did not name ${readyzName}`] : []),
    ],
    remarks: [
      ...(exact ? [] : inexact),
      `the longest wait ${(slowest.ms / 1000).toFixed(1)} s (${slowest.path})`,
      answersOf(target),
      ...(short === undefined ? [] : [`somebody waited for a core in ${Math.round(100 * short)} % of the time`]),
    ],
  };
}

/** The run cannot go on after this. */
export class NotRecovered extends Error {
  constructor(late: string[], isRunning: boolean) {
    const what = isRunning ? `still not: ${late.join(", ") || "ready"}` : "the product ended";
    super(`did not recover within ${RECOVERED_WITHIN_MS / 1000} s (${what})`);
  }
}

/** Asks all the while whether the service is ready. */
function watchReadiness(target: Target) {
  const down = new Set<string>();
  let readyMs = Number.NEGATIVE_INFINITY;
  const stop = new AbortController();
  void (async () => {
    for (; !stop.signal.aborted; await sleep(POLL_MS)) {
      const askedMs = performance.now();
      const answer = await target.ask("/readyz");
      if (answer?.status === 200) readyMs = askedMs;
      const { parts = {} } = (answer?.body ?? {}) as { parts?: Record<string, string> };
      for (const [name, state] of Object.entries(parts)) if (state === "down") down.add(name);
    }
  })();
  return {
    isReadySince: (ms: number) => readyMs >= ms,
    /** Which parts it said were down. */
    end(): ReadonlySet<string> {
      stop.abort();
      return down;
    },
  };
}

function answersOf({ statuses, unanswered }: Target): string {
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, n]) => `${n} × ${status}`);
  return `answers ${counts.join(", ")}; none ${unanswered} times`;
}
