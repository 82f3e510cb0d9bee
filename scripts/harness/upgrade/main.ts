import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { DEFAULT_ISSUER, parseStoresEnv } from "../../../src/env.ts";
import { print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { brokerComponent } from "../../../src/programs/stack/components/broker-process.ts";
import { clickhouseSettings, newClickHouseAccess } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../../src/programs/stack/components/clickhouse-process.ts";
import { sqldComponent } from "../../../src/programs/stack/components/sqld.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { Api } from "../api.ts";
import { Product, until } from "../product.ts";
import { Target } from "../target.ts";
import { TrialJob } from "../trial-job.ts";
import { checkOut, removeCheckout, runIn } from "./checkout.ts";
import { type Entrance, openEntrance } from "./entrance.ts";
import { Requests } from "./requests.ts";
import { Acknowledged, compare, sendOverHttp, sendOverMqtt } from "./telemetry-check.ts";
import { makeAgents } from "./upgrade-agents.ts";

const HELP = `npm run upgrade-trial -- --from <tag or revision>

Upgrades a product of an earlier version to the one in this folder, in the order of docs/operations.md, under load: telemetry over
HTTP and MQTT, logins, questions, a job with its readers. Says of each step how many requests failed and how long the longest took,
and in the end what was acknowledged and is not there. The stores and the broker stay; everything is on this machine, on free ports and
in a temporary folder, and goes when it is done. Both versions are started with one listening socket, as systemd does it, so that none
may fail; a version that cannot be (0.1.0) stands behind a proxy instead, and what fails as it is exchanged is told and not counted.

  --from <revision>   the earlier version (f09e6ab, which is 0.1.0)
  --seconds <n>       how long each step is watched at the least (5)`;

const ADMIN = { username: "admin@example.com", password: crypto.randomUUID() };
const AGENTS_PER_WAY = 4;
const READERS = 2;
const ASK_EVERY_MS = 100;
const LOG_IN_EVERY_MS = 1_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h", default: false },
      from: { type: "string", default: "f09e6ab" },
      seconds: { type: "string", default: "5" },
    },
  });
  if (values.help) return print(HELP);
  const seconds = Number(values.seconds);
  if (!(seconds > 0 && seconds <= 600)) throw new UserError("--seconds must be a number from 1 to 600.");

  const signal = interruption(CLEANUP_NOTICE);
  const folder = mkdtempSync(join(tmpdir(), "controller-upgrade-"));
  const before = join(folder, "before");
  const supervisor = new Supervisor();
  let entrance: Entrance | undefined;
  try {
    print(`Installing ${values.from}.`);
    await checkOut(values.from, before, signal);
    entrance = await openEntrance(before);
    const stores = await unlessAborted(startStores(folder, supervisor, entrance.url), signal);
    const env = { ...stores, PORT: String(entrance.port) };
    const trial = { before, dataDir: join(folder, "data"), env, entrance, seconds, signal };
    if (!(await upgrade(trial))) process.exitCode = 1;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    entrance?.close();
    await supervisor.stop();
    await removeCheckout(before);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Stores and a broker that outlive both versions. */
async function startStores(
  folder: string,
  supervisor: Supervisor,
  serviceUrl: string,
): Promise<Record<string, string>> {
  const [sqld, clickhouse, tcpPort, wsPort] = await Promise.all([
    anyFreePort(),
    anyFreePort(),
    anyFreePort(),
    anyFreePort(),
  ]);
  await supervisor.start(sqldComponent(folder, sqld));
  const access = newClickHouseAccess();
  const clickhouseOptions = { dataDir: folder, port: clickhouse, access, databases: ["controller"] };
  await supervisor.start(clickhouseComponent({ ...clickhouseOptions, executable: process.env.CLICKHOUSE_BIN }));
  const jwksUrl = `${serviceUrl}/.well-known/jwks.json`;
  await supervisor.start(
    brokerComponent({ dataDir: folder, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: DEFAULT_ISSUER }),
  );
  return {
    LIBSQL_URL: `http://127.0.0.1:${sqld}`,
    ...clickhouseSettings(`http://127.0.0.1:${clickhouse}`, access.owner),
    MQTT_URL: `ws://127.0.0.1:${wsPort}`,
  };
}

interface Trial {
  before: string;
  dataDir: string;
  /** Of both versions: where the stores and the broker are, and where they listen. */
  env: Record<string, string>;
  entrance: Entrance;
  seconds: number;
  signal: AbortSignal;
}

async function upgrade({ before, dataDir, env, entrance, seconds, signal }: Trial): Promise<boolean> {
  const { url, socket } = entrance;
  const settings = { ...env, ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password, LOG_REQUESTS: "failures" };
  const run = (cwd: string): Promise<Product> => Product.run("start", dataDir, settings, { cwd, socket, signal });
  const migrate = (...args: string[]) =>
    runIn(ROOT, "npm", ["run", "migrate", ...(args.length > 0 ? ["--", ...args] : [])], signal, env);

  print("Starting it.");
  let product = await run(before);
  try {
    const load = await startLoad(url, env.MQTT_URL ?? "");
    const step = async (name: string, work: () => Promise<void>): Promise<number> => {
      const startedMs = performance.now();
      await work();
      const tookS = ((performance.now() - startedMs) / 1000).toFixed(1);
      await sleep(seconds * 1000, undefined, { signal });
      return sayStep(`${name} (${tookS} s)`, load.requests);
    };
    let failed = 0;
    try {
      failed += await step("before anything", async () => {});
      failed += await step("npm run migrate", () => migrate());
      const failedMeanwhile = await step("the new version in the place of the former one", async () => {
        await product.interrupt();
        product = await run(ROOT);
      });
      // Without a socket that is held some do: what comes as the former version ends is taken, and served no more.
      if (socket !== undefined) failed += failedMeanwhile;
      failed += await step("npm run migrate -- --after-deploy", () => migrate("--after-deploy"));
    } finally {
      await load.end();
    }
    const { lost, doubled } = await compare(parseStoresEnv(env), load.acknowledged);
    const jobs = load.job.compare();
    const { http, mqtt } = load.acknowledged;
    print(
      `\nAcknowledged: ${http.size} samples over HTTP, ${mqtt.size} over MQTT, ${load.job.acknowledged.size} callbacks.`,
    );
    print(
      `Samples lost ${lost}, doubled ${doubled}; callbacks lost ${jobs.lost}, doubled ${jobs.doubled}, holes ${jobs.holes}.`,
    );
    return failed + lost + doubled + jobs.lost + jobs.doubled + jobs.holes + jobs.inversions + jobs.incomplete === 0;
  } finally {
    await product.interrupt();
  }
}

async function startLoad(url: string, mqttUrl: string) {
  const api = new Api(url);
  const token = await api.logIn(ADMIN.username, ADMIN.password);
  const agents = await makeAgents(api, token, 2 * AGENTS_PER_WAY);
  const requests = new Requests(url);
  const acknowledged = new Acknowledged();
  const target = new Target({ url, dataDir: "", urls: {} });
  const job = new TrialJob(target, token, { readers: READERS, sendersPerJob: 4, pauseMs: 20 });
  const [sending, reading] = [new AbortController(), new AbortController()];
  const { signal } = sending;
  const every = async (ms: number, work: () => Promise<unknown>) => {
    for (; !signal.aborted; await sleep(ms)) await work();
  };
  const headers = { Authorization: `Bearer ${token}` };
  const working = [
    ...agents.slice(0, AGENTS_PER_WAY).map((agent) => sendOverHttp(requests, agent, acknowledged, signal)),
    ...agents.slice(AGENTS_PER_WAY).map((agent) => sendOverMqtt(mqttUrl, agent, acknowledged, signal)),
    every(ASK_EVERY_MS, () => requests.send("accounts", "/api/v1/users/me", { headers })),
    every(ASK_EVERY_MS, () =>
      requests.send("charts", `/api/v1/metrics/agent_multi_metric_data?agent=${agents[0]?.apId}&metrics=n`, {
        headers,
      }),
    ),
    every(LOG_IN_EVERY_MS, () =>
      requests.send("logins", "/api/v1/token/?login_type=user", {
        method: "POST",
        body: new URLSearchParams({ ...ADMIN }),
      }),
    ),
    ...job.send(signal),
  ];
  const readers = job.read(reading.signal);
  return {
    requests,
    acknowledged,
    job,
    async end() {
      sending.abort();
      await Promise.all(working);
      await until(() => job.isRead, 60_000).catch(() => {});
      reading.abort();
      await Promise.all(readers);
    },
  };
}

/** Prints what came of the requests during a step; how many failed. */
function sayStep(name: string, requests: Requests): number {
  print(`\n${name}`);
  let failed = 0;
  for (const [kind, { count, failures, longestMs }] of requests.take()) {
    failed += failures.length;
    const why = [...new Set(failures)].join(", ");
    print(
      `  ${kind.padEnd(10)} ${String(count).padStart(6)} requests, ${failures.length} failed${why && ` (${why})`}, ` +
        `the longest took ${(longestMs / 1000).toFixed(1)} s`,
    );
  }
  return failed;
}

await runCommand(main);
