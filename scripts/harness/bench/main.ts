import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bold, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { Product } from "../product.ts";
import { runBareWorker } from "../workerd.ts";
import type { BenchContext } from "./context.ts";
import { benchCrowd } from "./crowd.ts";
import { benchDashboard } from "./dashboard-speed.ts";
import { benchHistory } from "./history.ts";
import { benchTelemetry } from "./ingest.ts";
import { benchJobs } from "./job-streams.ts";
import { benchToken } from "./logins.ts";
import { benchProfile } from "./profile.ts";
import { Report } from "./report.ts";
import { benchService } from "./requests.ts";
import { benchEmulator } from "./spin-up.ts";
import { benchStalled } from "./stalled.ts";

type Suite = (context: BenchContext) => Promise<void>;

const SUITES: Record<string, Suite> = {
  service: benchService,
  token: benchToken,
  telemetry: benchTelemetry,
  jobs: benchJobs,
  history: benchHistory,
  emulator: benchEmulator,
  crowd: benchCrowd,
  stalled: benchStalled,
  dashboard: benchDashboard,
  profile: benchProfile,
};

/** What a run without a name measures, one after the other. */
const TABLE = ["service", "token", "telemetry", "jobs", "history", "emulator"];

const HELP = `npm run bench [-- <suite>]

Measures the production form of the product, next to what it stands on in the same run: a bare Worker on the same workerd, a bare
Durable Object, the stores themselves. A figure by itself says more about the machine than about the product, a ratio does not.
Everything runs on this machine, on free ports and in a temporary folder, and goes when it is done. A promise of the product that was
broken makes the run fail.

Without a suite, all of the first six in one table, each on a product of its own; that takes about 20 minutes.

  service     what every request costs: health, users/me, cold start, bundle
  token       logging in, next to what the cores can hash, and what others notice of it
  telemetry   samples in, charts out, and what either costs as the data grows
  jobs        from a callback to the job's sockets, next to a bare Durable Object; idle sockets
  history     one long history through one socket: the reader's pace, bounded memory, the same as the store holds
  emulator    a thousand emulated access points for five minutes
  crowd       very many sockets at once (as many open files as there are sockets: see ulimit -n)
  stalled     one socket of a job never reads
  dashboard   the page in Chromium: a map of 10,000 access points, live charts
  profile     where the time goes in the Worker, on its dearest paths

  --seconds <n>   how long each figure is measured (5)
  --quick         less data: tells whether it works, not how well
  --rows <n>      points of the history (1,000,000)
  --jobs <n>      jobs of the crowd (1,000), idle sockets of jobs (5,000)
  --sockets <n>   sockets of each of them, 16 at the most (10)
  --json <file>   the figures as JSON besides (bench-<suite>.json, without a suite bench.json)`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h", default: false },
      quick: { type: "boolean", default: false },
      seconds: { type: "string", default: "5" },
      rows: { type: "string" },
      jobs: { type: "string" },
      sockets: { type: "string", default: "10" },
      json: { type: "string" },
    },
  });
  if (values.help) return print(HELP);
  const [name] = positionals;
  const seconds = Number(values.seconds);
  if (name !== undefined && !Object.hasOwn(SUITES, name))
    throw new UserError(`There is no suite "${name}". Try --help.`);
  if (!(seconds >= 0.2 && seconds <= 600)) throw new UserError("--seconds must be a number from 0.2 to 600.");
  const count = (option: string, value: string, max: number): number => {
    const parsed = Number(value);
    if (Number.isInteger(parsed) && parsed > 0 && parsed <= max) return parsed;
    throw new UserError(`--${option} must be a whole number from 1 to ${max}.`);
  };
  const options = {
    seconds,
    isQuick: values.quick,
    rows: values.rows === undefined ? undefined : count("rows", values.rows, 100_000_000),
    jobs: values.jobs === undefined ? undefined : count("jobs", values.jobs, 10_000),
    socketsPerJob: count("sockets", values.sockets, 16),
    report: new Report(name ?? "all"),
  };
  const signal = interruption(CLEANUP_NOTICE);
  for (const suite of name === undefined ? TABLE : [name]) {
    if (name === undefined) print(bold(`\n${suite}`));
    await runSuite(SUITES[suite] as Suite, options, signal);
  }
  const { report } = options;
  report.print();
  const file = values.json ?? (name === undefined ? "bench.json" : `bench-${name}.json`);
  writeFileSync(file, report.toJson());
  print(`\nWritten to ${file}.`);
  if (!report.areAllKept) process.exitCode = 1;
}

/** Each on a product of its own: what one leaves behind, in memory and in the stores, would be measured by the next. */
async function runSuite(
  suite: Suite,
  options: Omit<BenchContext, "product" | "bareUrl" | "supervisor" | "folder" | "signal">,
  signal: AbortSignal,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "controller-bench-"));
  const supervisor = new Supervisor();
  let product: Product | undefined;
  try {
    print("Starting the product and, beside it, the bare Worker.");
    // The bare Worker writes no log either.
    // One account opens all jobs of the benchmark, more than an account may have otherwise.
    const env = { LOG_REQUESTS: "failures", OPEN_JOBS_PER_ACCOUNT: "50000" };
    product = await Product.run("start", join(folder, "data"), env, { signal });
    const bareUrl = await unlessAborted(runBareWorker(supervisor, folder, signal), signal);
    await unlessAborted(suite({ ...options, product, bareUrl, supervisor, folder, signal }), signal);
  } finally {
    await Promise.all([supervisor.stop(), product?.interrupt()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

await runCommand(main);
