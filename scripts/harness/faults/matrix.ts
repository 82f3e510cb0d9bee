import { writeFileSync } from "node:fs";
import { print } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import type { Damage } from "./bad-line.ts";
import { shuffledCallbacks } from "./callback-faults.ts";
import { clocks } from "./clocks.ts";
import { crowd } from "./crowd.ts";
import { backlogs, loneSurrogates } from "./hostile-agents.ts";
import { hostileMessages } from "./hostile-messages.ts";
import { damage, fill, kill, stop } from "./kinds.ts";
import { pausedReaders } from "./paused-readers.ts";
import type { Outcome, Row } from "./row.ts";
import { canMount } from "./small-disk.ts";
import { strangers } from "./strangers.ts";
import { type Fault, NotRecovered, underLoad } from "./under-load.ts";
import { type Disk, type Line, type Part, World } from "./world.ts";

/** Everything that can go wrong, one after the other. */

const MAX_OUTPUT = 4_000;
const MAX_ERRORS = 8;
const MAX_ERROR_LENGTH = 700;

const PARTS: readonly Part[] = ["worker", "sqld", "clickhouse", "broker", "bridge", "emulator", "passwords"];
const LINES: readonly Line[] = ["worker", "sqld", "clickhouse", "broker"];
const DISKS: readonly Disk[] = ["worker", "sqld", "clickhouse", "broker", "emulator"];
const DAMAGES: readonly Damage[] = ["slow", "cut", "half-open", "garbled answers", "garbled questions"];

const row = (name: string, fault: Fault<World>, skipped?: string): Row => ({
  name,
  ...(skipped !== undefined && { skipped }),
  run: (world, signal) => underLoad(world, fault, signal),
});

export interface MatrixOptions {
  only: RegExp;
  /** Of the crowd. */
  sockets: number;
  jsonFile: string | undefined;
  signal: AbortSignal;
}

const rowsOf = ({ sockets }: Pick<MatrixOptions, "sockets">): Row[] => [
  ...PARTS.map((part) => row(`kill ${part}`, kill(part))),
  ...PARTS.map((part) => row(`stop ${part}`, stop(part))),
  ...DAMAGES.flatMap((kind) => LINES.map((line) => row(`${kind}: ${line}`, damage(line, kind)))),
  ...DISKS.map((disk) => row(`full disk: ${disk}`, fill(disk), canMount() ? undefined : "needs root")),
  { name: "callbacks doubled and shuffled", run: shuffledCallbacks },
  { name: "clocks that are off", run: clocks },
  { name: "lone surrogates", run: loneSurrogates },
  { name: "backlogs", run: backlogs },
  { name: "hostile MQTT messages", run: (world) => hostileMessages(world.target(), { rounds: 10, pauseMs: 50 }) },
  { name: "readers that pause", run: pausedReaders },
  { name: "strangers at the stores", run: strangers },
  { name: `${sockets} sockets, kill worker`, run: (world, signal) => crowd(world, sockets, signal) },
];

export const namesOfRows = (options: Pick<MatrixOptions, "sockets">): string[] =>
  rowsOf(options).map(({ name }) => name);

interface Result extends Partial<Outcome> {
  name: string;
  state: "kept" | "broken" | "skipped";
  broken: string[];
}

/** Runs the rows that are wanted; whether every promise was kept. Where it is cut off, the rows before that are told nevertheless. */
export async function runMatrix(options: MatrixOptions): Promise<boolean> {
  const { only, jsonFile, signal } = options;
  const rows = rowsOf(options).filter(({ name }) => only.test(name));
  const results: Result[] = [];
  print(`${rows.length} rows. Starting the product, with its stores beside it.`);
  const hasSmallDisks = rows.some(({ name, skipped }) => name.startsWith("full") && skipped === undefined);
  const world = await World.start({ hasSmallDisks, signal });
  const startedMs = performance.now();
  try {
    for (const [i, { name, skipped, run }] of rows.entries()) {
      if (signal.aborted) break;
      if (skipped !== undefined) {
        results.push({ name, state: "skipped", broken: [`skipped: ${skipped}`] });
        continue;
      }
      print(`${i + 1}/${rows.length} ${name} …`);
      const said = world.product.output.length;
      const outcome = await unlessAborted(run(world, signal), signal).catch((error: Error) => error);
      if (signal.aborted) break;
      if (outcome instanceof Error) {
        results.push({ name, state: "broken", broken: [outcome.message] });
        print(`  BROKEN: ${outcome.message}\n${world.product.output.slice(-MAX_OUTPUT)}`);
        // What came after it would be about this one.
        if (outcome instanceof NotRecovered) break;
        continue;
      }
      const result: Result = { name, state: outcome.broken.length === 0 ? "kept" : "broken", ...outcome };
      results.push(result);
      print(
        `  ${[...outcome.broken.map((what) => `BROKEN: ${what}`), describe(result), ...outcome.remarks].join("; ")}`,
      );
      for (const line of result.state === "broken" ? errorsIn(world.product.output.slice(said)) : [])
        print(`    ${line}`);
    }
  } finally {
    await world.end();
  }
  print(`\n${table(results)}\n\n${((performance.now() - startedMs) / 60_000).toFixed(1)} minutes.`);
  if (jsonFile !== undefined) writeFileSync(jsonFile, `${JSON.stringify(results, undefined, 2)}\n`);
  signal.throwIfAborted();
  return results.length > 0 && results.every(({ state }) => state !== "broken");
}

/** What the service itself took for bugs, each kind once. */
function errorsIn(output: string): string[] {
  const errors = output.split("\n").filter((line) => line.includes('"level":"error"'));
  const kinds = errors.map((line) => line.replace(/"(?:time|request_id)":"[^"]*",?/g, "").slice(0, MAX_ERROR_LENGTH));
  return [...new Set(kinds)].slice(0, MAX_ERRORS);
}

const seconds = (ms: number | undefined): string => (ms === undefined ? "–" : (ms / 1000).toFixed(1));

const describe = ({ acknowledged, lost, doubled, recoveredMs, settledMs }: Result): string =>
  `acknowledged ${acknowledged}, lost ${lost}, doubled ${doubled}, back after ${seconds(recoveredMs)} s, all there after ${seconds(settledMs)} s`;

/** In Markdown, as the documentation shows it. */
function table(results: readonly Result[]): string {
  const lines = results.map(({ name, acknowledged, lost, doubled, recoveredMs, settledMs, broken }) => [
    name,
    acknowledged ?? "–",
    lost ?? "–",
    doubled ?? "–",
    seconds(recoveredMs),
    seconds(settledMs),
    broken.join("; "),
  ]);
  const head = ["fault", "acknowledged", "lost", "doubled", "back after s", "all there after s", "broken"];
  return [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
