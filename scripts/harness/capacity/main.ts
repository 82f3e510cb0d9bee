import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { DEFAULT_DEMAND, type Demand, type Figures, loadOn, MEASURED, type PartLoad, type Place } from "./model.ts";

const DEFAULT_FILE = "docs/figures.json";

const HELP = `npm run capacity

What a network of some size needs, computed from what a run of npm run bench measured (docs/scaling.md explains the model). Cores are
those of the machine that was measured.

  --access-points <n,n,…>   how many (1000,10000,100000,1000000)
  --every <seconds>         between two reports of one (${DEFAULT_DEMAND.reportEveryS})
  --mqtt <share>            that report over MQTT; the others over HTTP (${DEFAULT_DEMAND.mqttShare})
  --viewers <n>             people with a page of live charts open, for each 1000 access points (${DEFAULT_DEMAND.viewersPerThousand})
  --streams <n>             job sockets open, for each 1000 access points (${DEFAULT_DEMAND.streamsPerThousand})
  --days <n>                that points are kept; means over a minute for 400 days (${DEFAULT_DEMAND.keptDays})
  --figures <file>          what was measured (${DEFAULT_FILE}; see npm run bench -- --json)
  --json                    as JSON instead of a table`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h", default: false },
      "access-points": { type: "string", default: "1000,10000,100000,1000000" },
      every: { type: "string" },
      mqtt: { type: "string" },
      viewers: { type: "string" },
      streams: { type: "string" },
      days: { type: "string" },
      figures: { type: "string", default: DEFAULT_FILE },
      json: { type: "boolean", default: false },
    },
  });
  if (values.help) return print(HELP);
  const figures = readFigures(values.figures);
  const demand: Omit<Demand, "accessPoints"> = {
    reportEveryS: positive("every", values.every, DEFAULT_DEMAND.reportEveryS),
    mqttShare: positive("mqtt", values.mqtt, DEFAULT_DEMAND.mqttShare),
    viewersPerThousand: positive("viewers", values.viewers, DEFAULT_DEMAND.viewersPerThousand),
    streamsPerThousand: positive("streams", values.streams, DEFAULT_DEMAND.streamsPerThousand),
    keptDays: positive("days", values.days, DEFAULT_DEMAND.keptDays),
  };
  if (demand.mqttShare > 1) throw new UserError("--mqtt must be a share from 0 to 1.");
  if (demand.reportEveryS === 0) throw new UserError("--every must be more than 0.");
  const sizes = values["access-points"].split(",").map((size) => positive("access-points", size, 0));
  const loads = sizes.map((accessPoints) => loadOn({ ...demand, accessPoints }, figures));
  if (values.json) return print(JSON.stringify(loads, null, 2));
  printTable(sizes, loads);
}

function positive(option: string, value: string | undefined, preset: number): number {
  const parsed = value === undefined || value === "" ? preset : Number(value);
  if (Number.isFinite(parsed) && parsed >= 0) return parsed;
  throw new UserError(`--${option} must be a number, 0 or more.`);
}

function readFigures(file: string): Figures {
  let measured: { figures: { id?: string; value: number; details?: Record<string, number | string> }[] };
  try {
    measured = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new UserError(`${file} cannot be read: ${(error as Error).message}`);
  }
  const byId = new Map(measured.figures.flatMap((figure) => (figure.id === undefined ? [] : [[figure.id, figure]])));
  return Object.fromEntries(
    Object.entries<Place>(MEASURED).map(([name, { id, detail }]) => {
      const figure = byId.get(id);
      const value = detail === undefined ? figure?.value : figure?.details?.[detail];
      if (typeof value !== "number") throw new UserError(`${file} does not tell ${detail ?? "the figure"} of ${id}.`);
      return [name, value];
    }),
  ) as Figures;
}

function printTable(sizes: readonly number[], loads: readonly PartLoad[][]): void {
  const rows = (loads[0] ?? []).map(({ part, what, unit }, i) => [
    part,
    `${what}, ${unit}`,
    ...loads.map((load) => short(load[i]?.value ?? 0)),
  ]);
  const table = [["part", "access points", ...sizes.map((size) => size.toLocaleString("en"))], ...rows];
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  for (const [i, row] of table.entries()) {
    print(`| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`);
    if (i === 0) print(`| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  }
}

const short = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(2)));

await runCommand(main);
