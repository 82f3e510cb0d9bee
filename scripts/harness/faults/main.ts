import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { Product } from "../product.ts";
import { killUnderCommands } from "./command-kills.ts";
import { killUnderJobs } from "./job-kills.ts";
import { namesOfRows, runMatrix } from "./matrix.ts";
import { killUnderTelemetry, PARTS, type Part } from "./telemetry-kills.ts";

interface FaultsOptions {
  kills: number;
  parts: readonly Part[];
}

interface Suite {
  /** How often a part is killed, where not told. */
  kills: number;
  /** Says what it found; whether every promise was kept. */
  run(product: Product, options: FaultsOptions): Promise<boolean>;
}

const SOCKETS = 10_000;

const SUITES: Record<string, Suite> = {
  telemetry: { kills: 10, run: telemetry },
  jobs: { kills: 20, run: jobs },
  commands: { kills: 10, run: commands },
};

const HELP = `npm run faults

Lets everything go wrong that can, under load, and compares what was acknowledged with what is there in the end: parts are killed and
stopped, lines to them are slow, cut, dead or garbled, disks are full, callbacks come doubled and shuffled, clocks are off, agents send
lone surrogates and backlogs of years, readers pause, and ten thousand sockets lose their service at once. Prints a table; takes about half an hour.
Everything runs on this machine, on free ports and in a temporary folder, and goes when it is done. Full disks need root.

  --only <pattern>  only the rows whose names match (a regular expression); --list shows them
  --sockets <n>     how many sockets the crowd opens (${SOCKETS})
  --json <file>     writes the results there, too

npm run faults -- <suite>

Kills parts of the product again and again, under one load:

  telemetry   agents send over HTTP and MQTT while one part after the other is killed
  jobs        callbacks are posted and read through sockets while workerd is killed
  commands    access points are spun up and commanded while the broker is killed

  --kills <n>       how often each part is killed (telemetry ${SUITES.telemetry?.kills}, jobs ${SUITES.jobs?.kills}, commands ${SUITES.commands?.kills})
  --parts <a,b,…>   which parts, for telemetry (${PARTS.join(",")})`;

async function telemetry(product: Product, { kills, parts }: FaultsOptions): Promise<boolean> {
  let isExact = true;
  for (const part of parts) {
    print(`\nKilling the ${part} ${kills} times under load.`);
    const outcome = await killUnderTelemetry(product, part, kills);
    const { acknowledgedHttp, acknowledgedMqtt, lost, doubled, accountFailures, recoveredMs, settledMs } = outcome;
    isExact &&= lost === 0 && doubled === 0;
    print(
      `  acknowledged: ${acknowledgedHttp} samples over HTTP, ${acknowledgedMqtt} over MQTT\n` +
        `  lost ${lost}, doubled ${doubled}; back after ${longestS(recoveredMs)} s at the longest, ` +
        `all there ${longestS([settledMs])} s after the end; accounts refused ${accountFailures} times`,
    );
  }
  return isExact;
}

async function jobs(product: Product, { kills }: FaultsOptions): Promise<boolean> {
  print(`\nKilling workerd ${kills} times under callbacks and sockets.`);
  const outcome = await killUnderJobs(product, kills);
  const { acknowledged, lost, doubled, inversions, holes, incomplete, connections, recoveredMs } = outcome;
  print(
    `  acknowledged: ${acknowledged} callbacks; read over ${connections} connections\n` +
      `  lost ${lost}, doubled ${doubled}, out of order ${inversions}, holes ${holes}, incomplete readers ${incomplete}; ` +
      `back after ${longestS(recoveredMs)} s at the longest`,
  );
  return lost + doubled + inversions + holes + incomplete === 0;
}

async function commands(product: Product, { kills }: FaultsOptions): Promise<boolean> {
  print(`\nKilling the broker ${kills} times under spin-ups and commands.`);
  const outcome = await killUnderCommands(product, kills);
  print(
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
      list: { type: "boolean", default: false },
      only: { type: "string", default: "" },
      sockets: { type: "string", default: String(SOCKETS) },
      json: { type: "string" },
      kills: { type: "string" },
      parts: { type: "string", default: PARTS.join() },
    },
  });
  if (values.help) return print(HELP);
  const [name] = positionals;
  if (name === undefined) {
    const wanted = {
      only: patternOf(values.only),
      sockets: wholeNumber("--sockets", values.sockets, 100_000),
      jsonFile: values.json,
    };
    if (values.list) return print(namesOfRows(wanted).join("\n"));
    if (!(await runMatrix({ ...wanted, signal: interruption(CLEANUP_NOTICE) }))) process.exitCode = 1;
    // After a part that did not recover, its load is still trying.
    process.exit();
  }
  const suite = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (suite === undefined) throw new UserError(`There is no suite "${name}". Try --help.`);
  const kills = values.kills === undefined ? suite.kills : wholeNumber("--kills", values.kills, 1_000);
  const parts = values.parts.split(",");
  const isPart = (name: string): name is Part => (PARTS as readonly string[]).includes(name);
  if (!parts.every(isPart)) throw new UserError(`--parts must be of ${PARTS.join(", ")}.`);
  await runSuite(suite, { kills, parts });
}

async function runSuite(suite: Suite, options: FaultsOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  const signal = interruption(CLEANUP_NOTICE);
  let product: Product | undefined;
  try {
    print("Starting the product.");
    product = await Product.run("start", join(folder, "data"), {}, { signal });
    if (!(await unlessAborted(suite.run(product, options), signal))) process.exitCode = 1;
  } finally {
    await product?.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

function wholeNumber(option: string, text: string, max: number): number {
  const number = Number(text);
  if (!(Number.isInteger(number) && number > 0 && number <= max))
    throw new UserError(`${option} must be a number from 1 to ${max}.`);
  return number;
}

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text, "i");
  } catch {
    throw new UserError("--only must be a regular expression.");
  }
}

await runCommand(main);
