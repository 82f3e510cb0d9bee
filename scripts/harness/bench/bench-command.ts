import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bold, parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { ApiClient } from "../client.ts";
import { Product } from "../product.ts";
import { runBareWorker } from "../workerd.ts";
import { benchDashboard } from "./dashboard-suite.ts";
import { benchEmulator } from "./emulator-suite.ts";
import { benchHistory } from "./history-suite.ts";
import { benchTelemetry } from "./ingest-suite.ts";
import { benchToken } from "./login-suite.ts";
import { benchProfile } from "./profile-suite.ts";
import { Report } from "./report.ts";
import { benchService } from "./service-suite.ts";
import { benchCrowd, benchJobs } from "./stream-suite.ts";
import type { BenchContext } from "./suite.ts";

interface Suite {
  description: string;
  run(context: BenchContext): Promise<void>;
  /** Not part of a run without a name. */
  isExtra?: boolean;
}

const SUITES: Record<string, Suite> = {
  service: { description: "Cost of every request: health, users/me, cold start, bundle", run: benchService },
  token: { description: "Logins, next to what the cores can hash, and their effect on others", run: benchToken },
  telemetry: { description: "Samples in, charts out, and their costs as the data grows", run: benchTelemetry },
  jobs: {
    description: "From a callback to the job's sockets, next to a bare Durable Object; idle sockets",
    run: benchJobs,
  },
  history: {
    description: "A long history through one socket: backpressure, bounded memory, correctness",
    run: benchHistory,
  },
  emulator: { description: "A thousand emulated access points for five minutes", run: benchEmulator },
  crowd: {
    description: "Very many sockets at once (needs as many open files: ulimit -n)",
    run: benchCrowd,
    isExtra: true,
  },
  dashboard: {
    description: "The page in Chromium: a map of 10,000 access points, live charts",
    run: benchDashboard,
    isExtra: true,
  },
  profile: { description: "CPU profiles of the Worker on its most expensive paths", run: benchProfile, isExtra: true },
};

const SPEC = {
  name: "npm run bench",
  arguments: "[<suite>]",
  summary: `Measures the production form of the product next to its baseline in the same run: a bare Worker and a bare Durable Object on
the same workerd, and the stores themselves. Ratios say more about the product than absolute figures, which depend on the machine.
Without a suite, runs the first six in one table, each on a new product; that takes about 20 minutes. Exits with 1 if a requirement is
violated.

Everything runs on this machine, on free ports and in a temporary folder, and is deleted at the end.`,
  sections: { Suites: Object.fromEntries(Object.entries(SUITES).map(([name, suite]) => [name, suite.description])) },
  options: {
    seconds: {
      type: "number",
      value: "n",
      description: "Measure each figure for so long",
      default: 5,
      min: 0.2,
      max: 600,
    },
    quick: { type: "boolean", description: "Use less data: shows whether it works, not how well" },
    rows: {
      type: "number",
      value: "n",
      description: "Points of the history (1,000,000)",
      min: 1,
      max: 100_000_000,
      isInteger: true,
    },
    jobs: {
      type: "number",
      value: "n",
      description: "Jobs of the crowd (1,000), idle sockets (5,000)",
      min: 1,
      max: 10_000,
      isInteger: true,
    },
    sockets: {
      type: "number",
      value: "n",
      description: "Sockets of each job of the crowd",
      default: 10,
      min: 1,
      max: 16,
      isInteger: true,
    },
    json: { type: "string", value: "file", description: "Write the figures there (bench.json, bench-<suite>.json)" },
  },
} as const;

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { seconds, quick: isQuick, rows, jobs, sockets: socketsPerJob, json } = command.values;
  const [name] = command.positionals;
  if (name !== undefined && !Object.hasOwn(SUITES, name))
    throw new UserError(`There is no suite "${name}". See npm run bench -- --help.`);
  const report = new Report(name ?? "all");
  const options = { seconds, isQuick, rows, jobs, socketsPerJob, report, signal: interruption(CLEANUP_NOTICE) };
  for (const [suiteName, { run, isExtra }] of Object.entries(SUITES)) {
    if (name === undefined ? isExtra : suiteName !== name) continue;
    if (name === undefined) print(bold(`\n${suiteName}`));
    await runSuite(run, options);
  }
  report.print();
  const file = json ?? (name === undefined ? "bench.json" : `bench-${name}.json`);
  writeFileSync(file, report.toJson());
  print(`\nWritten to ${file}.`);
  if (!report.areAllKept) process.exitCode = 1;
});

type SuiteOptions = Omit<BenchContext, "product" | "client" | "bareUrl" | "supervisor" | "folder">;

/** Runs a suite on a new product, so that it does not measure what another suite left in memory and in the stores. */
async function runSuite(run: Suite["run"], options: SuiteOptions): Promise<void> {
  const { signal } = options;
  const folder = mkdtempSync(join(tmpdir(), "controller-bench-"));
  const supervisor = new Supervisor();
  let product: Product | undefined;
  try {
    print("Starting the product and the bare Worker.");
    // No request log, like the bare Worker. One account opens all jobs, more than an account may have otherwise.
    const env = { LOG_REQUESTS: "failures", OPEN_JOBS_PER_ACCOUNT: "50000" };
    product = await Product.run("start", join(folder, "data"), env, { signal });
    const bareUrl = await unlessAborted(runBareWorker(supervisor, folder, signal), signal);
    const client = new ApiClient(product.url);
    await unlessAborted(run({ ...options, product, client, bareUrl, supervisor, folder }), signal);
  } finally {
    await Promise.all([supervisor.stop(), product?.interrupt()]);
    rmSync(folder, { recursive: true, force: true });
  }
}
