import { parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { runShardFaults } from "../cluster/shard-faults.ts";
import { runBrokerClusters } from "./broker-cluster.ts";
import { KILL_SUITES, type KillSuite } from "./kill-loop.ts";
import { killRows, outageRows, type Row, rowsOf, runMatrix } from "./matrix.ts";

const helpOf = ({ description, components, kills }: KillSuite): string =>
  `${description} (kills ${components.join(", ")}; ${kills} times each)`;

interface Suite {
  help: string;
  rows(options: { kills?: number | undefined; each?: number | undefined; minutes: number }): Row[];
}

const killSuite = (suite: KillSuite): Suite => ({
  help: helpOf(suite),
  rows: ({ kills, each }) => killRows(suite, kills, each),
});

const SUITES = new Map<string, Suite>([
  ...Object.entries(KILL_SUITES).map(([name, suite]): [string, Suite] => [name, killSuite(suite)]),
  ["outage", { help: "Agents report while ClickHouse does not respond", rows: ({ minutes }) => outageRows(minutes) }],
]);

const count = { type: "number", value: "n", isInteger: true, min: 1 } as const;

const SPEC = {
  name: "npm run faults",
  arguments: "[<suite>]",
  summary: `Injects faults under load and compares what was acknowledged with what is there in the end. Components are killed and stopped,
connections are slow, cut, dead or garbled, disks are full, callbacks come duplicated and shuffled, clocks are off, agents send lone
surrogates and backlogs of years, readers pause, and ten thousand sockets lose their service at once. Prints a table; takes about half an
hour. Full disks need root.

With a suite, injects one kind of fault under one workload instead, many times or for long. FLUSH_INTERVAL_MS=15 in the environment
makes kills meet inserts more often. Everything runs on this machine, on free ports and in a
temporary folder, and is deleted at the end.`,
  sections: { Suites: Object.fromEntries([...SUITES].map(([name, { help }]) => [name, help])) },
  options: {
    only: { type: "string", value: "pattern", description: "Only rows whose names match a regular expression" },
    list: { type: "boolean", description: "List the rows" },
    sockets: { ...count, description: "Open so many sockets in the last row", default: 10_000, max: 100_000 },
    json: { type: "string", value: "file", description: "Also write the results to a file" },
    minutes: { type: "number", value: "n", description: "Length of the outage", default: 10, min: 0.1, max: 60 },
    cluster: {
      type: "boolean",
      description: "Kill each node of clusters instead: ClickHouse, brokers with Redis, RabbitMQ",
    },
    kills: { ...count, description: "Kill each component of a suite so often", max: 1_000 },
    each: {
      ...count,
      description: "Continue a suite until each load has acknowledged so much (collectors: 100000)",
      max: 100_000_000,
    },
  },
} as const;

function patternOf(text: string): RegExp {
  try {
    return new RegExp(text, "i");
  } catch {
    throw new UserError("--only must be a regular expression.");
  }
}

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { only = "", list, sockets, json: jsonFile, kills, each, minutes, cluster } = command.values;
  const [name] = command.positionals;
  const suite = SUITES.get(name ?? "");
  if (name !== undefined && suite === undefined)
    throw new UserError(`There is no suite "${name}". See npm run faults -- --help.`);
  const pattern = patternOf(only);
  if (cluster) {
    const signal = interruption(CLEANUP_NOTICE);
    const options = { kills, pattern, jsonFile, signal, isList: list };
    const areShardsKept = await runShardFaults(options);
    if (!(await runBrokerClusters(options)) || !areShardsKept) process.exitCode = 1;
    process.exit();
  }
  const rows = (suite?.rows({ kills, each, minutes }) ?? rowsOf(sockets)).filter((row) => pattern.test(row.name));
  if (list) return print(rows.map((row) => row.name).join("\n"));
  if (!(await runMatrix(rows, jsonFile, interruption(CLEANUP_NOTICE)))) process.exitCode = 1;
  // The workloads of a row that did not recover may still run.
  process.exit();
});
