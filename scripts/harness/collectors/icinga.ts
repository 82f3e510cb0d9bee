import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";

/** Debian's icinga2. */

const ICINGA = "/usr/sbin/icinga2";

/** Undefined if it can run here. */
export const icingaIsMissing = (): string | undefined =>
  existsSync(ICINGA) ? undefined : `${ICINGA} is not installed`;

export interface IcingaTarget {
  url: string;
  /** Its hosts. Each has one service. */
  apIds: readonly string[];
  token: string;
  /** The script of the check. By default it has four values. */
  check?: string;
  /** Whether icinga2 also writes the limits of values. By default it does not. */
  writesLimits?: boolean;
}

export interface IcingaCheck {
  atS: number;
  values: Record<string, number>;
}

/** Units: bytes, milliseconds, percent. */
const RADIO_CHECK = `#!/bin/sh
n=$(date +%s%N | tail -c 7)
echo "OK | 'load 1'=0.$n;0.75;0.9;0;1 rx=$(date +%s)B rtt=$(date +%S)ms 'free /'=33.25%"
`;

/** Starts icinga2 with a check every two seconds: it writes times in whole seconds. Returns a function that reads its own record of the results. */
export async function startIcinga(
  supervisor: Supervisor,
  home: string,
  { url, apIds, token, check = RADIO_CHECK, writesLimits = false }: IcingaTarget,
): Promise<() => IcingaCheck[]> {
  for (const name of ["data", "log", "cache", "run", "spool"]) mkdirSync(join(home, name), { recursive: true });
  const script = join(home, "check");
  writeFileSync(script, check, { mode: 0o755 });
  const config = join(home, "icinga2.conf");
  const { hostname, port } = new URL(url);
  writeFileSync(
    config,
    `include <itl>
object IcingaApplication "app" { }
object CheckerComponent "checker" { }
object Influxdb2Writer "controller" {
  host = "${hostname}"
  port = ${port}
  organization = "any"
  bucket = "any"
  auth_token = "${token}"
  flush_interval = 1s
  enable_send_thresholds = ${writesLimits}
}
object PerfdataWriter "record" {
  service_perfdata_path = "${home}/spool/service"
  service_temp_path = "${home}/spool/current"
  host_perfdata_path = "${home}/spool/host"
  host_temp_path = "${home}/spool/current-host"
  service_format_template = "$service.last_check$\\t$service.perfdata$"
  rotation_interval = 1s
}
object CheckCommand "values" { command = [ "${script}" ] }
${apIds.map(hostConfig).join("")}`,
  );
  const group = spawnSync("id", ["-gn"], { encoding: "utf8" }).stdout.trim();
  const constants = {
    ...{ RunAsUser: userInfo().username, RunAsGroup: group, DataDir: `${home}/data`, LogDir: `${home}/log` },
    ...{ CacheDir: `${home}/cache`, InitRunDir: `${home}/run`, SpoolDir: `${home}/spool` },
  };
  await supervisor.start({
    name: "icinga2",
    command: ICINGA,
    args: ["daemon", "-c", config, ...Object.entries(constants).flatMap(([name, value]) => ["-D", `${name}=${value}`])],
    ready: async (lines) => lines.some((line) => line.includes("Activated all objects")),
    display: () => undefined,
  });
  return () => {
    const texts = globSync(`${home}/spool/service.*`)
      .toSorted()
      .map((file) => readFileSync(file, "utf8"));
    const lines = texts
      .join("")
      .split("\n")
      .filter((line) => line !== "");
    return lines.map((line) => {
      const [atS, perfdata = ""] = line.split("\t");
      const pairs = [...perfdata.matchAll(/(?:'([^']+)'|([^\s=']+))=([\d.]+)/g)];
      const values = pairs.map(([, quoted, plain, value]) => [quoted ?? plain ?? "", Number(value)]);
      return { atS: Number(atS), values: Object.fromEntries(values) };
    });
  };
}

const hostConfig = (apId: string): string => `object Host "${apId}" { check_command = "dummy" }
object Service "radio" {
  host_name = "${apId}"
  check_command = "values"
  check_interval = 2s
  retry_interval = 2s
}
`;
