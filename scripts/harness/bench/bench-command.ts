import { writeFileSync } from "node:fs";
import { bold, parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { ApiClient } from "../client.ts";
import { withProduct } from "../product.ts";
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

type Suite = [description: string, run: (context: BenchContext) => Promise<void>];

/** A run without a name measures these. */
const TABLE: Record<string, Suite> = {
  service: ["Cost of every request: health, users/me, cold start, bundle", benchService],
  token: ["Logins, next to what the cores can hash, and their effect on others", benchToken],
  telemetry: ["Samples in, charts out, and their costs as the data grows", benchTelemetry],
  jobs: ["From a callback to the job's sockets, next to a bare Durable Object; idle sockets", benchJobs],
  history: [
    "A long history through one socket: backpressure, memory, correctness; charts of the network",
    benchHistory,
  ],
  emulator: ["A thousand emulated access points for five minutes", benchEmulator],
};

const SUITES: Record<string, Suite> = {
  ...TABLE,
  crowd: ["Very many sockets at once (needs as many open files: ulimit -n)", benchCrowd],
  dashboard: ["The page in Chromium: a map of 10,000 access points, live charts", benchDashboard],
  profile: ["CPU profiles of the Worker on its most expensive paths", benchProfile],
};

const count = { type: "number", value: "n", isInteger: true, min: 1 } as const;

const SPEC = {
  name: "npm run bench",
  arguments: "[<suite>]",
  summary: `Measures the production form of the product next to its baseline in the same run: a bare Worker and a bare Durable Object on
the same workerd, and the stores themselves. Ratios say more about the product than absolute figures, which depend on the machine.
Without a suite, runs the first six in one table, each on a new product; that takes about 20 minutes. Exits with 1 if a requirement is
violated.

Everything runs on this machine, on free ports and in a temporary folder, and is deleted at the end.`,
  sections: { Suites: Object.fromEntries(Object.entries(SUITES).map(([name, [description]]) => [name, description])) },
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
    rows: { ...count, description: "Points of the history (1,000,000)", max: 100_000_000 },
    jobs: { ...count, description: "Jobs of the crowd (1,000), idle sockets (5,000)", max: 10_000 },
    sockets: { ...count, description: "Sockets of each job of the crowd", default: 10, max: 16 },
    json: { type: "string", value: "file", description: "Write the figures there (bench.json, bench-<suite>.json)" },
  },
} as const;

/** No request log, like the bare Worker. One account opens all jobs, more than an account may have otherwise. */
const ENV = { LOG_REQUESTS: "failures", OPEN_JOBS_PER_ACCOUNT: "50000" };

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { seconds, quick: isQuick, rows, jobs, sockets: socketsPerJob, json } = command.values;
  const [name] = command.positionals;
  if (name !== undefined && !Object.hasOwn(SUITES, name))
    throw new UserError(`There is no suite "${name}". See npm run bench -- --help.`);
  const report = new Report(name ?? "all");
  const signal = interruption(CLEANUP_NOTICE);
  const options = { seconds, isQuick, rows, jobs, socketsPerJob, report, signal };
  for (const suite of name === undefined ? Object.keys(TABLE) : [name]) {
    const [, run] = SUITES[suite] as Suite;
    print(bold(`\n${suite}`));
    // Each on a new product, so that it does not measure what another suite left in memory and in the stores.
    await withProduct("bench", ENV, signal, (product, folder) => runSuite(run, { ...options, product, folder }));
  }
  report.print();
  const file = json ?? (name === undefined ? "bench.json" : `bench-${name}.json`);
  writeFileSync(file, report.toJson());
  print(`\nWritten to ${file}.`);
  if (!report.areAllKept) process.exitCode = 1;
});

type SuiteOptions = Omit<BenchContext, "client" | "bareUrl" | "supervisor">;

async function runSuite(run: Suite[1], options: SuiteOptions): Promise<void> {
  const supervisor = new Supervisor();
  try {
    const bareUrl = await runBareWorker(supervisor, options.folder, options.signal);
    await run({ ...options, client: new ApiClient(options.product.url), bareUrl, supervisor });
  } finally {
    await supervisor.stop();
  }
}
