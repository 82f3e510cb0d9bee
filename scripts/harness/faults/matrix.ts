import { readFileSync, writeFileSync } from "node:fs";
import { print } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { ApiClient } from "../client.ts";
import { logFindings } from "../fuzz/judge.ts";
import { clocks } from "./clock-faults.ts";
import {
  COMPONENTS,
  DISKS,
  type EnvironmentOptions,
  type FaultEnvironment,
  type FaultTarget,
  PROXIED,
  withFaultEnvironment,
} from "./environment.ts";
import { NETWORK_FAULTS } from "./faulty-proxy.ts";
import { backlogs, hostileMessages, loneSurrogates } from "./hostile-agents.ts";
import { type KillSuite, killUnderLoad, startReporting } from "./kill-loop.ts";
import { canMount } from "./limited-disk.ts";
import { strangers } from "./strangers.ts";
import { crowd, pausedReaders, shuffledCallbacks, stalledReader } from "./stream-faults.ts";
import {
  besideLoad,
  ENOUGH,
  type Fault,
  fullDisk,
  kill,
  NotRecovered,
  network,
  type Outcome,
  suspend,
  underLoad,
} from "./under-load.ts";

/** All faults, one row after the other. */

export interface Row<E extends FaultTarget = FaultEnvironment> {
  name: string;
  /** Why the row cannot run here. */
  skipped?: string;
  run(environment: E, signal: AbortSignal): Promise<Outcome>;
}

/** Starts what the rows need, and stops it after the work. */
export type WithEnvironment<E extends FaultTarget> = (
  options: { signal: AbortSignal },
  work: (environment: E) => Promise<void>,
) => Promise<void>;

const row = (name: string, faultOf: (environment: FaultEnvironment) => Fault): Row => ({
  name,
  run: (environment, signal) => underLoad(environment, faultOf(environment), { signal, atLeast: ENOUGH }),
});

const beside = (name: string, run: Row["run"]): Row => ({
  name,
  run: (environment, signal) => besideLoad(environment, run, signal),
});

const FULL_DISK = "full disk: ";

export const rowsOf = (sockets: number): Row[] => [
  ...COMPONENTS.map((component) => row(`kill ${component}`, (at) => kill(at, component))),
  ...COMPONENTS.map((component) => row(`stop ${component}`, (at) => suspend(at, component))),
  ...NETWORK_FAULTS.flatMap((fault) =>
    PROXIED.map((component) => row(`${fault}: ${component}`, (at) => network(at, component, fault))),
  ),
  ...DISKS.map((disk) => ({
    ...row(`${FULL_DISK}${disk}`, (at) => fullDisk(at, disk)),
    ...(!canMount() && { skipped: "needs root" }),
  })),
  beside("callbacks duplicated and shuffled", shuffledCallbacks),
  beside("clocks that are off", clocks),
  beside("lone surrogates", loneSurrogates),
  beside("backlogs", backlogs),
  beside("hostile MQTT messages", (at) => hostileMessages(at.target(), { rounds: 10, pauseMs: 50 })),
  beside("readers that pause", pausedReaders),
  beside("a reader that stalls", stalledReader),
  { name: "strangers at the stores", run: strangers },
  {
    ...beside(`${sockets} sockets, kill worker`, (at, signal) => crowd(at, sockets, signal)),
    ...(sockets > maxSockets() && { skipped: `ulimit -n allows ${maxSockets()} sockets (--sockets)` }),
  },
];

/** Each socket takes three of this process's descriptors: its own, and two of the proxy. */
const maxSockets = (): number =>
  Math.floor(Number(/Max open files +(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]) / 3) - 200;

export const killRows = (suite: KillSuite, times = suite.kills, atLeastEach = suite.each): Row[] =>
  suite.components.map((component) => ({
    name: `kill ${component} ${times} times`,
    run: (at, signal) => {
      // Without the timeout of the other rows, which these workloads exceed on a busy machine.
      const target = () => ({ ...at.target(), client: new ApiClient(at.product.url) });
      return killUnderLoad({ ...at, target }, suite, component, { times, atLeastEach, signal });
    },
  }));

/** Suspends ClickHouse for minutes, while the service accepts each of 200 reports per second and charts continue. */
export const outageRows = (minutes: number): Row[] => [
  {
    name: `ClickHouse away for ${minutes} minutes`,
    run: (at, signal) => {
      const fault = { ...suspend(at, "clickhouse"), holdMs: minutes * 60_000 };
      return underLoad(at, fault, { signal, start: startReporting });
    },
  },
];

interface Result extends Partial<Outcome> {
  name: string;
  state: "kept" | "violated" | "skipped";
  violations: string[];
}

const MAX_OUTPUT = 4_000;

/** Runs the rows with the stores beside the product. Returns whether every guarantee was kept. */
export async function runMatrix(
  rows: Row[],
  jsonFile: string | undefined,
  signal: AbortSignal,
  { startBrokers }: Pick<EnvironmentOptions, "startBrokers"> = {},
): Promise<boolean> {
  const hasLimitedDisks = rows.some(({ name, skipped }) => name.startsWith(FULL_DISK) && skipped === undefined);
  const withEnvironment: WithEnvironment<FaultEnvironment> = (options, work) =>
    withFaultEnvironment({ ...options, hasLimitedDisks, startBrokers }, work);
  return await runRows(rows, withEnvironment, jsonFile, signal);
}

/** Runs rows in any environment, and prints the finished ones also after Ctrl-C. Returns whether every guarantee was kept. */
export async function runRows<E extends FaultTarget>(
  rows: readonly Row<E>[],
  withEnvironment: WithEnvironment<E>,
  jsonFile: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const results: Result[] = [];
  print(`${rows.length} rows. Starting the product, with its stores beside it.`);
  const startedMs = performance.now();
  await withEnvironment({ signal }, async (environment) => {
    for (const [i, { name, skipped, run }] of rows.entries()) {
      if (skipped !== undefined) {
        results.push({ name, state: "skipped", violations: [`skipped: ${skipped}`] });
        continue;
      }
      print(`${i + 1}/${rows.length} ${name} …`);
      const printed = environment.product.output.length;
      const ended = await unlessAborted(run(environment, signal), signal).catch((error: Error) => error);
      if (signal.aborted) break;
      const outcome = ended instanceof Error ? { violations: [ended.message] } : ended;
      const state = outcome.violations.length === 0 ? "kept" : "violated";
      results.push({ name, state, ...outcome });
      print(`  ${describe(outcome)}`);
      if (ended instanceof Error) print(environment.product.output.slice(-MAX_OUTPUT));
      else if (state === "violated")
        for (const { what } of logFindings(environment.product.output.slice(printed))) print(what);
      if (ended instanceof NotRecovered) break;
    }
  });
  print(`\n${table(results)}\n\n${((performance.now() - startedMs) / 60_000).toFixed(1)} minutes.`);
  if (jsonFile !== undefined) writeFileSync(jsonFile, `${JSON.stringify(results, undefined, 2)}\n`);
  signal.throwIfAborted();
  return results.length > 0 && results.every(({ state }) => state !== "violated");
}

const COLUMNS = ["acknowledged", "lost", "duplicates", "recovered after s", "complete after s"];

const cellsOf = ({ acknowledged, kinds, lost, duplicates, recoveredMs, settledMs }: Partial<Outcome>): string[] => {
  const seconds = [recoveredMs, settledMs].map((ms) => ms && (ms / 1000).toFixed(1));
  const counts = kinds && Object.entries(kinds).map(([kind, count]) => `${kind} ${count}`);
  return [counts ? `${acknowledged} (${counts.join(", ")})` : acknowledged, lost, duplicates, ...seconds].map((cell) =>
    String(cell ?? "–"),
  );
};

function describe({ violations, remarks = [], ...counts }: Pick<Result, "violations" | keyof Outcome>): string {
  const cells = cellsOf(counts).map((cell, i) => `${COLUMNS[i]} ${cell}`);
  return [...violations.map((violation) => `VIOLATED: ${violation}`), cells.join(", "), ...remarks].join("; ");
}

/** Returns a Markdown table, as in the documentation. */
function table(results: readonly Result[]): string {
  const lines = results.map((result) => [result.name, ...cellsOf(result), result.violations.join("; ")]);
  const head = ["fault", ...COLUMNS, "violations"];
  return [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
