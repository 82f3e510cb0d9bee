import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";

/** Debian's Prometheus and the programs that belong to it. */

export const PROMETHEUS = "/usr/bin/prometheus";
export const ALERTMANAGER = "/usr/bin/prometheus-alertmanager";
export const PROMTOOL = "/usr/bin/promtool";

export interface Tool {
  url: string;
  /** Replaces the configuration of the running program. */
  configure(config: string): Promise<void>;
}

export interface ToolOptions {
  /** By default Prometheus. */
  command?: string;
  config: string;
  args?: string[];
  port?: number;
}

/** Starts a program with its files in a folder, and waits until it is ready. */
export async function startTool(
  supervisor: Supervisor,
  folder: string,
  { command = PROMETHEUS, config, args = [], port: givenPort }: ToolOptions,
): Promise<Tool> {
  const name = randomUUID();
  const [port, file] = [givenPort ?? (await anyFreePort()), join(folder, `${name}.yml`)];
  const url = `http://127.0.0.1:${port}`;
  const own = command === PROMETHEUS ? [`--storage.tsdb.path=${join(folder, name)}`, "--web.enable-lifecycle"] : [];
  writeFileSync(file, config);
  await supervisor.start({
    name,
    command,
    args: [`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`, ...own, ...args],
    env: { PATH: process.env.PATH ?? "" },
    ready: async () => (await fetch(`${url}/-/ready`)).ok,
    display: () => undefined,
  });
  return {
    url,
    async configure(changed) {
      writeFileSync(file, changed);
      const response = await fetch(`${url}/-/reload`, { method: "POST" });
      if (!response.ok) throw new Error(`Prometheus rejected its configuration: ${await response.text()}`);
    },
  };
}

/** A series in the result of a query: the last value, all values, or both are absent, as the query says. */
export interface QueriedSeries {
  metric: Record<string, string>;
  value?: [timeS: number, value: string];
  values?: [timeS: number, value: string][];
}

/** Returns the result of a query. Throws with the message of Prometheus if it fails. */
export async function queryPrometheus(
  url: string,
  query: string,
  parameters: { time?: number } | { start: number; end: number; step: number } = {},
): Promise<QueriedSeries[]> {
  const given = Object.entries({ query, ...parameters }).map(([key, value]): [string, string] => [key, String(value)]);
  const path = "step" in parameters ? "query_range" : "query";
  const response = await fetch(`${url}/api/v1/${path}`, { method: "POST", body: new URLSearchParams(given) });
  const { data, error } = (await response.json()) as { data?: { result: QueriedSeries[] }; error?: string };
  if (data === undefined) throw new Error(`${query}: ${error}`);
  return data.result;
}
