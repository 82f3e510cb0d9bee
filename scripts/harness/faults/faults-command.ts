import { parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { withProduct } from "../product.ts";
import type { Component } from "./environment.ts";
import { KILL_SUITES, type KillSuite, killUnderLoad } from "./kill-loop.ts";
import { describe, rowNames, runMatrix } from "./matrix.ts";
import type { Outcome } from "./under-load.ts";

const SUITES: Record<string, KillSuite> = KILL_SUITES;

const count = { type: "number", value: "n", isInteger: true, min: 1 } as const;

const SPEC = {
  name: "npm run faults",
  arguments: "[<suite>]",
  summary: `Injects faults under load and compares what was acknowledged with what is there in the end. Components are killed and stopped,
connections are slow, cut, dead or garbled, disks are full, callbacks come duplicated and shuffled, clocks are off, agents send lone
surrogates and backlogs of years, readers pause, and ten thousand sockets lose their service at once. Prints a table; takes about half an
hour. Full disks need root.

With a suite, kills components again and again under one workload instead. Everything runs on this machine, on free ports and in a
temporary folder, and is deleted at the end.`,
  sections: {
    Suites: Object.fromEntries(
      Object.entries(SUITES).map(([name, { description, components, kills }]) => [
        name,
        `${description} (kills ${components.join(", ")}; ${kills} times each)`,
      ]),
    ),
  },
  options: {
    only: { type: "string", value: "pattern", description: "Only rows whose names match a regular expression" },
    list: { type: "boolean", description: "List the rows" },
    sockets: { ...count, description: "Open so many sockets in the last row", default: 10_000, max: 100_000 },
    json: { type: "string", value: "file", description: "Also write the results to a file" },
    kills: { ...count, description: "Kill each component so often", max: 1_000 },
    parts: { type: "string", value: "a,b", description: "Kill only these components of a suite" },
  },
} as const;

/** Returns whether every guarantee was kept. */
const runSuite = (suite: KillSuite, components: readonly Component[], kills: number): Promise<boolean> =>
  withProduct("faults", {}, interruption(CLEANUP_NOTICE), async (product) => {
    const outcomes: Outcome[] = [];
    for (const component of components) {
      print(`\nKilling ${component} ${kills} times under load.`);
      const outcome = await killUnderLoad(product, suite, component, kills);
      print(`  ${describe(outcome)}`);
      outcomes.push(outcome);
    }
    return outcomes.every(({ violations }) => violations.length === 0);
  });

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
  const { only, list, sockets, json: jsonFile, kills, parts } = command.values;
  const [name] = command.positionals;
  if (name === undefined) {
    if (list) return print(rowNames(sockets, patternOf(only ?? "")).join("\n"));
    const signal = interruption(CLEANUP_NOTICE);
    if (!(await runMatrix({ only: patternOf(only ?? ""), sockets, jsonFile, signal }))) process.exitCode = 1;
    // The workloads of a row that did not recover may still run.
    process.exit();
  }
  const suite = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (suite === undefined) throw new UserError(`There is no suite "${name}". See npm run faults -- --help.`);
  const names = parts?.split(",") ?? suite.components;
  const chosen = suite.components.filter((component) => names.includes(component));
  if (chosen.length !== names.length) throw new UserError(`--parts must be of ${suite.components.join(", ")}.`);
  if (!(await runSuite(suite, chosen, kills ?? suite.kills))) process.exitCode = 1;
});
