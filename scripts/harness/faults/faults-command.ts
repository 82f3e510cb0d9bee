import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { Product } from "../product.ts";
import { KILL_SUITES, type KillSuite, killUnderLoad } from "./kill-loop.ts";
import { rowNames, runMatrix } from "./matrix.ts";

const SUITES: Record<string, KillSuite> = KILL_SUITES;

const SOCKETS = "Open so many sockets in the last row";

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
    only: {
      type: "string",
      value: "pattern",
      description: "Only rows whose names match a regular expression",
      default: "",
    },
    list: { type: "boolean", description: "List the rows" },
    sockets: {
      type: "number",
      value: "n",
      description: SOCKETS,
      default: 10_000,
      min: 1,
      max: 100_000,
      isInteger: true,
    },
    json: { type: "string", value: "file", description: "Also write the results to a file" },
    kills: {
      type: "number",
      value: "n",
      description: "Kill each component so often",
      min: 1,
      max: 1_000,
      isInteger: true,
    },
    parts: { type: "string", value: "a,b", description: "Kill only these components of a suite" },
  },
} as const;

const longestS = (times: readonly number[]): string => (Math.max(0, ...times) / 1000).toFixed(1);

/** Returns whether every guarantee was kept. */
async function runSuite(suite: KillSuite, components: readonly string[], kills: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "controller-faults-"));
  const signal = interruption(CLEANUP_NOTICE);
  let product: Product | undefined;
  let isKept = true;
  try {
    print("Starting the product.");
    product = await Product.run("start", join(folder, "data"), {}, { signal });
    for (const component of components) {
      print(`\nKilling ${component} ${kills} times under load.`);
      const outcome = await unlessAborted(killUnderLoad(product, suite, component, kills), signal);
      const { verdicts, problems, recoveredMs } = outcome;
      for (const { name, acknowledged, lost, duplicates } of verdicts)
        print(`  ${name}: acknowledged ${acknowledged}, lost ${lost}, duplicates ${duplicates}`);
      for (const problem of problems) print(`  VIOLATED: ${problem}`);
      const settledS = longestS(verdicts.map(({ settledMs }) => settledMs));
      print(`  recovered within ${longestS(recoveredMs)} s, complete ${settledS} s after the end`);
      isKept &&= problems.length === 0;
    }
    return isKept;
  } finally {
    await product?.interrupt();
    rmSync(folder, { recursive: true, force: true });
  }
}

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
  const chosen = parts?.split(",") ?? suite.components;
  if (!chosen.every((component) => suite.components.includes(component)))
    throw new UserError(`--parts must be of ${suite.components.join(", ")}.`);
  if (!(await runSuite(suite, chosen, kills ?? suite.kills))) process.exitCode = 1;
});
