import { writeFileSync } from "node:fs";
import { bold, parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { makeUser } from "../accounts.ts";
import { withClickHouse } from "../clickhouse.ts";
import { ApiClient } from "../client.ts";
import { benchCluster } from "../cluster/cluster-bench.ts";
import { withProduct } from "../product.ts";
import { buildBareWorker, startWorkerd } from "../workerd.ts";
import { benchAlerts } from "./alert-suite.ts";
import { benchBacktests } from "./backtest-suite.ts";
import { benchCollectors } from "./collector-suite.ts";
import { benchDashboard } from "./dashboard-suite.ts";
import { benchEmulator } from "./emulator-suite.ts";
import { benchHistory } from "./history-suite.ts";
import { benchTelemetry } from "./ingest-suite.ts";
import { benchToken } from "./login-suite.ts";
import { benchPeer, missingPackages } from "./peer/peer-suite.ts";
import { Report } from "./report.ts";
import { benchService } from "./service-suite.ts";
import { benchCrowd, benchJobs } from "./stream-suite.ts";
import type { BenchContext } from "./suite.ts";

type Suite = [
  description: string,
  run: (context: BenchContext) => Promise<void>,
  /** Returns what the machine lacks for the suite. */
  reasonToSkip?: () => Promise<string | undefined>,
];

const SUITES: Record<string, Suite> = {
  service: ["Cost of every request: health, users/me, cold start, bundle", benchService],
  token: ["Logins, next to what the cores can hash, and their effect on others", benchToken],
  telemetry: ["Samples in, charts out, and their costs as the data grows", benchTelemetry],
  jobs: ["From a callback to the job's sockets, next to a bare Durable Object; idle sockets", benchJobs],
  history: [
    "A long history through one socket: backpressure, memory, correctness; charts of the network",
    benchHistory,
  ],
  emulator: ["A thousand emulated access points for five minutes", benchEmulator],
  peer: [
    "Reports, callbacks and charts next to a Python service with InfluxDB, from Debian's packages",
    benchPeer,
    missingPackages,
  ],
  alerts: ["The cost of 100 alert rules, and the time from a sample to a webhook", benchAlerts],
  backtest: ["Backtests of alert rules over 30 days of 1,000 agents", benchBacktests],
  collectors: ["Points in the protocols of other systems, next to single reports", benchCollectors],
  cluster: ["One more ClickHouse shard, and one more broker with Redis", benchCluster],
  crowd: ["10,000 sockets at once (needs as many open files: ulimit -n)", benchCrowd],
  dashboard: ["The page in Chromium: a map of 10,000 access points, live charts", benchDashboard],
};

/** A run without a name measures these. */
const BY_DEFAULT = ["service", "token", "telemetry", "jobs", "history", "emulator", "peer"];

const number = { type: "number", value: "n" } as const;

const SPEC = {
  name: "npm run bench",
  arguments: "[<suite>]",
  summary: `Measures the production form of the product next to its baseline in the same run: a bare Worker and a bare Durable Object on
the same workerd, and the stores themselves. Ratios say more about the product than absolute figures, which depend on the machine.
Without a suite, runs the first seven, each on a new product; that takes about 25 minutes. Writes the figures to bench.json or
bench-<suite>.json. Exits with 1 if a requirement is violated.

Everything runs on this machine, on free ports and in a temporary folder, and is deleted at the end.`,
  sections: { Suites: Object.fromEntries(Object.entries(SUITES).map(([name, [description]]) => [name, description])) },
  options: {
    seconds: { ...number, description: "Measure each figure for so long", default: 5, min: 0.2, max: 600 },
    quick: { type: "boolean", description: "Use less data: shows whether it works, not how well" },
    rows: { ...number, description: "Points of the history (1,000,000)", isInteger: true, min: 1, max: 100_000_000 },
  },
} as const;

/**
 * No request log, like the bare Worker. One account opens all jobs, more than an account may have otherwise. The receiver of webhooks is on
 * this machine.
 */
const ENV = { LOG_REQUESTS: "failures", OPEN_JOBS_PER_ACCOUNT: "50000", WEBHOOK_NETWORKS: "private" };

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { seconds, quick: isQuick, rows } = command.values;
  const [name] = command.positionals;
  if (name !== undefined && !Object.hasOwn(SUITES, name))
    throw new UserError(`There is no suite "${name}". See npm run bench -- --help.`);
  const report = new Report();
  const signal = interruption(CLEANUP_NOTICE);
  for (const suite of name === undefined ? BY_DEFAULT : [name]) {
    const [, run, reasonToSkip] = SUITES[suite] as Suite;
    print(bold(`\n${suite}`));
    const reason = await reasonToSkip?.();
    if (reason !== undefined) {
      print(`Skipped: ${reason}`);
      continue;
    }
    // Each on a new product, so that it does not measure what another suite left in memory and in the stores.
    await withProduct("bench", ENV, signal, async (product, folder) => {
      const bareBuildDir = await buildBareWorker(folder);
      const bare = await startWorkerd(product, bareBuildDir, folder);
      const supervisor = new Supervisor();
      const cleanups = [() => bare.end(), () => supervisor.stop()];
      const end = async () => void (await Promise.all(cleanups.map((cleanup) => cleanup())));
      // An interrupted suite is abandoned, so it does not reach its end.
      signal.addEventListener("abort", () => void end());
      try {
        const user = await makeUser(product.dataDir, "bench@example.com");
        const components = { product, client: new ApiClient(product.url), bare, bareBuildDir, supervisor };
        const atEnd: BenchContext["atEnd"] = (work) => void cleanups.push(async () => void (await work()));
        const options = { user, folder, seconds, isQuick, rows, report, atEnd, signal };
        await withClickHouse(product, (clickhouse) => run({ ...components, clickhouse, ...options }));
      } finally {
        await end();
      }
    });
  }
  if (report.isEmpty) return;
  const file = name === undefined ? "bench.json" : `bench-${name}.json`;
  writeFileSync(file, report.toJson(name ?? "all"));
  print(`\nWritten to ${file}.`);
  if (!report.areAllKept) process.exitCode = 1;
});
