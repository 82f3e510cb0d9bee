import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { killUnderCommands } from "./faults/commands.ts";
import { killUnderJobs } from "./faults/jobs.ts";
import { killUnderTelemetry, PARTS, type Part } from "./faults/telemetry.ts";
import { Refused, runCommand, say } from "./stack/console.ts";
import { Product } from "./trial/product.ts";

interface FaultsOptions {
  kills: number;
  parts: readonly Part[];
  signal: AbortSignal;
}

interface Suite {
  /** How often a part is killed, where not told. */
  kills: number;
  /** Says what it found; whether every promise was kept. */
  run(product: Product, options: FaultsOptions): Promise<boolean>;
}

const SUITES: Record<string, Suite> = {
  telemetry: { kills: 10, run: telemetry },
  jobs: { kills: 20, run: jobs },
  commands: { kills: 10, run: commands },
};

const HELP = `npm run faults -- <suite>

Kills parts of the product, again and again, under load, and compares what was acknowledged with what is there in the end.
Everything runs on this machine, on free ports and in a temporary folder, and goes when it is done.

  telemetry   agents send over HTTP and MQTT while one part after the other is killed
  jobs        callbacks are posted and read through sockets while workerd is killed
  commands    access points are spun up and commanded while the broker is killed

  --kills <n>       how often each part is killed (telemetry ${SUITES.telemetry?.kills}, jobs ${SUITES.jobs?.kills}, commands ${SUITES.commands?.kills})
  --parts <a,b,…>   which parts, for telemetry (${PARTS.join(",")})`;

async function telemetry(product: Product, { kills, parts, signal }: FaultsOptions): Promise<boolean> {
  let isExact = true;
  for (const part of parts) {
    say(`\nKilling the ${part} ${kills} times under load.`);
    const outcome = await killUnderTelemetry(product, part, kills, signal);
    const { acknowledgedHttp, acknowledgedMqtt, lost, doubled, accountFailures, recoveredMs, settledMs } = outcome;
    isExact &&= lost === 0 && doubled === 0;
    say(
      `  acknowledged: ${acknowledgedHttp} samples over HTTP, ${acknowledgedMqtt} over MQTT\n` +
        `  lost ${lost}, doubled ${doubled}; back after ${longestS(recoveredMs)} s at the longest, ` +
        `all there ${longestS([settledMs])} s after the end; accounts refused ${accountFailures} times`,
    );
  }
  return isExact;
}

async function jobs(product: Product, { kills, signal }: FaultsOptions): Promise<boolean> {
  say(`\nKilling workerd ${kills} times under callbacks and sockets.`);
  const outcome = await killUnderJobs(product, kills, signal);
  const { acknowledged, lost, doubled, inversions, holes, incomplete, connections, recoveredMs } = outcome;
  say(
    `  acknowledged: ${acknowledged} callbacks; read over ${connections} connections\n` +
      `  lost ${lost}, doubled ${doubled}, out of order ${inversions}, holes ${holes}, incomplete readers ${incomplete}; ` +
      `back after ${longestS(recoveredMs)} s at the longest`,
  );
  return lost + doubled + inversions + holes + incomplete === 0;
}

async function commands(product: Product, { kills, signal }: FaultsOptions): Promise<boolean> {
  say(`\nKilling the broker ${kills} times under spin-ups and commands.`);
  const outcome = await killUnderCommands(product, kills, signal);
  say(
    `  accepted: ${outcome.commands} commands, ${outcome.spinups} spin-ups\n` +
      `  not carried out ${outcome.undone.length} ${outcome.undone.join("; ")}; ` +
      `back after ${longestS(outcome.recoveredMs)} s at the longest`,
  );
  return outcome.undone.length === 0;
}

const longestS = (recoveredMs: readonly number[]): string => (Math.max(0, ...recoveredMs) / 1000).toFixed(1);

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      kills: { type: "string" },
      parts: { type: "string", default: PARTS.join() },
    },
  });
  if (values.help) return say(HELP);
  const [name = ""] = positionals;
  const suite = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (suite === undefined) throw new Refused(`There is no suite "${name}". Try --help.`);
  const kills = Number(values.kills ?? suite.kills);
  const parts = values.parts.split(",");
  if (!(Number.isInteger(kills) && kills > 0 && kills <= 1_000))
    throw new Refused("--kills must be a number from 1 to 1000.");
  const isPart = (name: string): name is Part => (PARTS as readonly string[]).includes(name);
  if (!parts.every(isPart)) throw new Refused(`--parts must be of ${PARTS.join(", ")}.`);

  const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  say("Starting the product.");
  const product = await Product.run("start", join(folder, "data"));
  try {
    if (!(await suite.run(product, { kills, parts, signal: stop.signal }))) process.exitCode = 1;
  } finally {
    await product.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

await runCommand(main);
