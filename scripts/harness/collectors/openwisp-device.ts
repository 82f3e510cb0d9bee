import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatMetricName } from "../../../src/protocols/metric-name.ts";
import { until } from "../product.ts";
import { cleanUpAtExit } from "./collector-account.ts";

/**
 * OpenWISP's agent, a shell script for OpenWrt, on this machine. It runs in namespaces of its own: its paths are fixed, and it looks for its
 * own processes among the children of process 1. Small programs stand in for those of OpenWrt, and record what the script does.
 */

/** Not part of this repository: its licence is another one. */
const SCRIPT_URL =
  "https://raw.githubusercontent.com/openwisp/openwrt-openwisp-monitoring/a98441178ca4823b4ea2ff30e451c49f4e4b3e60/openwisp-monitoring/files/monitoring.agent";
const DOWNLOADED_WITHIN_MS = 10_000;
const PROGRAMS = ["unshare", "curl", "gzip", "awk", "pgrep"];
const STOPPED_WITHIN_MS = 120_000;

/** Private mounts and processes. Without root, the user is root in a namespace only. */
const UNSHARE = [
  ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]),
  ...["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
];

export type OpenWispScript = { path: string } | { missing: string };

/** Returns the script: the file that OPENWISP_AGENT names, or a download into the folder. Otherwise says why it cannot run. */
export async function getOpenWispScript(folder: string): Promise<OpenWispScript> {
  const absent = PROGRAMS.filter((program) => spawnSync("which", [program]).status !== 0);
  if (absent.length > 0) return { missing: `${absent.join(", ")} not installed` };
  if (spawnSync("unshare", [...UNSHARE, "true"]).status !== 0) return { missing: "namespaces are not allowed" };
  const { OPENWISP_AGENT: local } = process.env;
  if (local !== undefined) return existsSync(local) ? { path: local } : { missing: `${local} does not exist` };
  const response = await fetch(SCRIPT_URL, { signal: AbortSignal.timeout(DOWNLOADED_WITHIN_MS) }).catch(
    () => undefined,
  );
  if (!response?.ok) return { missing: "the script cannot be downloaded (OPENWISP_AGENT may name a copy)" };
  const path = join(folder, "monitoring.agent");
  writeFileSync(path, await response.text());
  return { path };
}

/** What stands in for programs of OpenWrt. `/tmp/record` is the folder of the record. */
const standIns = (interfaces: number): Record<string, string> => ({
  ubus: `echo '{"memory": {"total": 100, "available": 90}}'`,
  jsonfilter: `case "$2" in *total) echo 100 ;; *) echo 90 ;; esac`,
  logger: `echo "$@" >> /tmp/record/log`,
  // Instead of a random number, the smallest.
  "openwisp-get-random-number": `echo "$1"`,
  // The values of report n are n, and for interface i 1000n + i and 1000n + i + 0.5.
  "netjson-monitoring": `n=$(($(cat /tmp/record/n) + 1))
if [ -f /tmp/record/stop ]; then touch /tmp/record/stopped; exec sleep 1000000; fi
echo $n > /tmp/record/n
awk -v n=$n 'BEGIN {
  printf "{\\"type\\": \\"DeviceMonitoring\\", \\"general\\": {\\"hostname\\": \\"openwrt\\", \\"uptime\\": %d}, \\"interfaces\\": [", n
  for (i = 0; i < ${interfaces}; i++) {
    printf "%s{\\"name\\": \\"eth%d\\", \\"type\\": \\"ethernet\\", ", (i > 0 ? "," : ""), i
    printf "\\"statistics\\": {\\"rx_bytes\\": %d, \\"tx_bytes\\": %d.5}}", n * 1000 + i, n * 1000 + i
  }
  print "]}"
}'`,
  // The script asks for the time once for each report, to name its file.
  date: `time=$(/usr/bin/date "$@")
echo "$(cat /tmp/record/n) $time" >> /tmp/record/reports
echo "$time"`,
  curl: `for url; do case "$url" in @*) end=$(tail -c 3 "\${url#@}") ;; esac; done
code=$(/usr/bin/curl "$@")
echo "$code \${url##*time=} $end" >> /tmp/record/responses
printf %s "$code"`,
});

/** The first process: starts the script twice, as its service does on OpenWrt. */
const INIT = `mount --bind "$0/sbin" /usr/sbin && mount --bind "$0/tmp" /tmp && cd / || exit 1
export PATH=/usr/sbin:/usr/bin:/bin
openwisp-monitoring --interval 1 --verbose_mode 1 --required_memory 0.05 --bootup_delay 0 --mode collect &
openwisp-monitoring --url "$1" --uuid "$2" --key "$3" --verify_ssl 1 --interval 1 --verbose_mode 1 --mode send &
wait`;

export interface OpenWispReport {
  tsMs: number;
  points: { metric: string; value: number }[];
}

export class OpenWispDevice {
  readonly #folder: string;
  readonly #interfaces: number;
  readonly #process: ChildProcess;
  readonly #cleanUp: () => void;

  /** Starts the script. It reports every second or less often, 1 value and 2 for each interface. */
  constructor(script: string, account: { url: string; apId: string; password: string }, interfaces: number) {
    this.#interfaces = interfaces;
    this.#folder = mkdtempSync(join(tmpdir(), "openwisp-"));
    const [sbin, record] = [join(this.#folder, "sbin"), join(this.#folder, "tmp", "record")];
    mkdirSync(sbin);
    mkdirSync(record, { recursive: true });
    writeFileSync(join(record, "n"), "0\n");
    for (const [name, text] of Object.entries(standIns(interfaces)))
      writeFileSync(join(sbin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    copyFileSync(script, join(sbin, "openwisp-monitoring"));
    chmodSync(join(sbin, "openwisp-monitoring"), 0o755);
    const { url, apId, password } = account;
    const args = [...UNSHARE, "sh", "-c", INIT, this.#folder, url, apId, password];
    this.#process = spawn("unshare", args, { stdio: "ignore" });
    this.#cleanUp = cleanUpAtExit(() => {
      this.#process.kill("SIGKILL");
      rmSync(this.#folder, { recursive: true, force: true });
    });
  }

  /**
   * The reports that it has collected. The script may begin to send a file while it still writes it, and discards it if the service rejects
   * the first half. Such a report is not among them.
   */
  get reports(): OpenWispReport[] {
    const responses = Map.groupBy(this.responses, ({ tsMs }) => tsMs);
    const isDiscarded = (tsMs: number): boolean => {
      const ofReport = responses.get(tsMs) ?? [];
      const isAccepted = ofReport.some(({ status }) => status === 200);
      return !isAccepted && ofReport.some(({ status, isWhole }) => status === 400 && !isWhole);
    };
    return this.#read("reports")
      .map(([n = "", time = ""]) => ({ tsMs: parseTime(time), points: this.#pointsOf(Number(n)) }))
      .filter(({ tsMs }) => !isDiscarded(tsMs));
  }

  /** The responses, each with the time of its report, and whether the file was whole. The status 0 means no response. */
  get responses(): { status: number; tsMs: number; isWhole: boolean }[] {
    return this.#read("responses").map(([status, time = "", end]) => {
      return { status: Number(status), tsMs: parseTime(time), isWhole: end === "]}" };
    });
  }

  /** How many reports the service has acknowledged. */
  get acknowledged(): number {
    return new Set(this.responses.filter(({ status }) => status === 200).map(({ tsMs }) => tsMs)).size;
  }

  /** Whether no report waits in a file. */
  get isEmpty(): boolean {
    const files = readdirSync(join(this.#folder, "tmp", "openwisp", "monitoring"));
    return files.every((file) => file === "response.txt");
  }

  /** Collects no more reports. */
  async stopCollecting(): Promise<void> {
    writeFileSync(this.#path("stop"), "");
    await until(() => existsSync(this.#path("stopped")), STOPPED_WITHIN_MS);
  }

  stop(): void {
    this.#cleanUp();
  }

  #pointsOf(n: number): OpenWispReport["points"] {
    const interfaces = Array.from({ length: this.#interfaces }, (_, i) => {
      const metric = (name: string) => formatMetricName(`interfaces.statistics.${name}`, { interface: `eth${i}` });
      const value = n * 1_000 + i;
      return [
        { metric: metric("rx_bytes"), value },
        { metric: metric("tx_bytes"), value: value + 0.5 },
      ];
    });
    return [{ metric: "general.uptime", value: n }, ...interfaces.flat()];
  }

  #path(name: string): string {
    return join(this.#folder, "tmp", "record", name);
  }

  /** Returns the words of each complete line. */
  #read(name: string): string[][] {
    if (!existsSync(this.#path(name))) return [];
    const lines = readFileSync(this.#path(name), "utf8").split("\n").slice(0, -1);
    return lines.map((line) => line.split(" "));
  }
}

/** Parses the beginning of `31-12-2026_23:59:59.000000&current=true`, in UTC. */
function parseTime(text: string): number {
  const [, day, month, year, clock] = /^(\d\d)-(\d\d)-(\d{4})_([\d:]{8})/.exec(text) ?? [];
  return Date.parse(`${year}-${month}-${day}T${clock}Z`);
}
