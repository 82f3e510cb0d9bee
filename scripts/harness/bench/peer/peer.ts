import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { anyFreePort } from "../../../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../../../src/programs/stack/supervisor.ts";
import type { TestAgent } from "../../accounts.ts";
import { ApiClient } from "../../client.ts";
import { forEachConcurrently } from "../../stats.ts";

/** The Python service of the comparison: peer.py under uvicorn, and InfluxDB. Debian 12 has packages of all that it needs. */

const MODULES = {
  fastapi: "python3-fastapi",
  uvicorn: "python3-uvicorn",
  uvloop: "python3-uvloop",
  httptools: "python3-httptools",
  websockets: "python3-websockets",
  multipart: "python3-multipart",
  jwt: "python3-jwt",
  influxdb: "python3-influxdb",
};
/** Debian's modules belong to Debian's Python. Another Python may precede it in PATH. */
const PYTHONS = ["/usr/bin/python3", "python3"];
const PRINT_MISSING =
  "import sys; from importlib.util import find_spec; print(*(m for m in sys.argv[1:] if not find_spec(m)))";

export interface PeerPrograms {
  /** The Python with the most of the modules. */
  python: string;
  /** Debian's packages that are not installed. */
  missing: string[];
}

/** Looks for the programs and modules that the Python service needs. */
export async function findPeerPrograms(
  pythons: readonly string[] = PYTHONS,
  influxd = "influxd",
): Promise<PeerPrograms> {
  const version = await outputOf(influxd, "version");
  const database = version?.startsWith("InfluxDB v1.") ? [] : ["influxdb"];
  const found: PeerPrograms[] = [];
  for (const python of pythons) {
    const output = await outputOf(python, "-I", "-c", PRINT_MISSING, ...Object.keys(MODULES));
    const names = output === undefined ? Object.keys(MODULES) : output.split(/\s+/);
    const packages = Object.entries(MODULES).flatMap(([name, debian]) => (names.includes(name) ? [debian] : []));
    found.push({ python, missing: [...database, ...packages] });
  }
  const [best] = found.toSorted((a, b) => a.missing.length - b.missing.length);
  return best ?? { python: "", missing: [...database, ...Object.values(MODULES)] };
}

/** Returns undefined if the program does not exist or fails. */
async function outputOf(program: string, ...args: string[]): Promise<string | undefined> {
  const result = await promisify(execFile)(program, args).catch(() => undefined);
  return result?.stdout;
}

export interface Peer {
  url: string;
  client: ApiClient;
  userToken: string;
  agents: TestAgent[];
  pidOf(component: string): number;
  /** Returns how many points of a field are stored, of all agents. */
  countPoints(field: string): Promise<number>;
}

const HOST = "127.0.0.1";
const USERNAME = "bench@example.com";

export interface PeerOptions {
  python: string;
  supervisor: Supervisor;
  folder: string;
  /** How many agents have accounts. */
  agents: number;
}

/** Starts InfluxDB and the service on free ports, with their data in the folder, and logs in all accounts. */
export async function startPeer({ python, supervisor, folder, agents: count }: PeerOptions): Promise<Peer> {
  const [port, influxPort, backupPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  const influxUrl = `http://${HOST}:${influxPort}`;
  const config = join(folder, "influxdb.conf");
  writeFileSync(config, influxConfig(join(folder, "influxdb"), influxPort, backupPort));
  mkdirSync(join(folder, "peer"));
  const respondsAt = (url: string) => async () => (await fetch(url)).ok;
  await supervisor.start({
    name: "influxd",
    command: "influxd",
    args: ["-config", config],
    ready: respondsAt(`${influxUrl}/ping`),
  });
  const url = `http://${HOST}:${port}`;
  const password = randomBytes(16).toString("hex");
  const program = join(import.meta.dirname, "peer.py");
  const accounts = join(folder, "peer", "accounts.sqlite");
  await supervisor.start({
    name: "uvicorn",
    command: python,
    // Without the modules and settings of the user.
    args: ["-I", "-B", program, String(port), String(influxPort), String(count), accounts],
    env: { PEER_PASSWORD: password },
    ready: respondsAt(`${url}/healthz`),
  });

  const client = new ApiClient(url);
  const agents = Array.from({ length: count }, (_, i) => ({ apId: `peer-${i}`, token: "" }));
  await forEachConcurrently(agents, async (agent) => {
    agent.token = await client.logIn(agent.apId, password, "agent");
  });
  return {
    url,
    client,
    userToken: await client.logIn(USERNAME, password),
    agents,
    pidOf: (component) => supervisor.pids[component] ?? 0,
    countPoints: (field) => countPoints(influxUrl, field),
  };
}

/** The defaults, except for places and logs. Each write is on disk before InfluxDB acknowledges it, as by default. */
const influxConfig = (folder: string, port: number, backupPort: number): string => `reporting-enabled = false
bind-address = "${HOST}:${backupPort}"
[meta]
  dir = "${folder}/meta"
[data]
  dir = "${folder}/data"
  wal-dir = "${folder}/wal"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "${HOST}:${port}"
  log-enabled = false
[logging]
  level = "error"
  suppress-logo = true
`;

interface InfluxResponse {
  results: { series?: { values: [string, number][] }[] }[];
}

/** Adds up the counts of all measurements, one per agent. */
async function countPoints(influxUrl: string, field: string): Promise<number> {
  const query = new URLSearchParams({ db: "controller", q: `SELECT count("${field}") FROM /^agent\\//` });
  const response = await fetch(`${influxUrl}/query?${query}`);
  const { results } = (await response.json()) as InfluxResponse;
  return (results[0]?.series ?? []).reduce((sum, { values }) => sum + (values[0]?.[1] ?? 0), 0);
}
