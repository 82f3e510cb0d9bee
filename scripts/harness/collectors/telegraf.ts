import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";

/** InfluxData's Telegraf. Debian and npm have none, so TELEGRAF_BIN names the program. */

export const TELEGRAF = process.env.TELEGRAF_BIN ?? "telegraf";

/** Undefined if it can run here. */
export const telegrafIsMissing = (): string | undefined =>
  existsSync(TELEGRAF) ? undefined : "TELEGRAF_BIN does not name a Telegraf";

export interface TelegrafTarget {
  /** With the path of the InfluxDB interface. */
  url: string;
  apId: string;
  token: string;
  /** Each sends all values of the memory. */
  memoryInputs?: number;
}

export type TelegrafPoint = [metric: string, tsMs: number, value: number];

/**
 * Starts Telegraf, which writes the processor time, memory and network of this machine every second. Returns a function that reads its own
 * record of the values.
 */
export async function startTelegraf(
  supervisor: Supervisor,
  home: string,
  { url, apId, token, memoryInputs = 1 }: TelegrafTarget,
): Promise<() => TelegrafPoint[]> {
  mkdirSync(home, { recursive: true });
  const [config, record] = [join(home, "telegraf.conf"), join(home, "record")];
  writeFileSync(
    config,
    `[agent]
  interval = "1s"
  flush_interval = "1s"
  hostname = "${apId}"
[[inputs.cpu]]
  percpu = false
  fieldinclude = ["usage_user", "usage_system", "usage_idle"]
${Array.from({ length: memoryInputs }, (_, i) => memoryInput(i)).join("")}[[inputs.net]]
[[outputs.influxdb_v2]]
  urls = ["${url}"]
  token = "${token}"
  organization = "any"
  bucket = "any"
[[outputs.file]]
  files = ["${record}"]
`,
  );
  await supervisor.start({
    name: "telegraf",
    command: TELEGRAF,
    args: ["--config", config],
    ready: async (lines) => lines.some((line) => line.includes("Config: Interval")),
    display: () => undefined,
  });
  return () => {
    const lines = existsSync(record) ? readFileSync(record, "utf8").split("\n") : [];
    return lines.filter((line) => line !== "").flatMap(pointsOf);
  };
}

/** The first has no further tag. */
const memoryInput = (i: number): string =>
  `[[inputs.mem]]\n${i === 0 ? "" : `  [inputs.mem.tags]\n    input = "${i}"\n`}`;

/** Parses a line. The names and tags of these inputs need no escapes. */
export function pointsOf(line: string): TelegrafPoint[] {
  const [series = "", fields = "", timeNs = ""] = line.split(" ");
  const [measurement, ...tags] = series.split(",");
  const { host: _, ...labels } = Object.fromEntries(tags.map((tag) => tag.split("=") as [string, string]));
  return fields.split(",").map((field) => {
    const [name, value = ""] = field.split("=");
    const metric = formatMetricName(`${measurement}.${name}`, labels);
    return [metric, Number(BigInt(timeNs) / 1_000_000n), Number(value.replace(/[iu]$/, ""))];
  });
}
