import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseCommand, print, runCommand } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { clickhouseSettings } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { TestAgent } from "../accounts.ts";
import { ApiClient } from "../client.ts";
import { Product } from "../product.ts";
import { holdSocket, type SocketHolder } from "../socket-holder.ts";
import { type Stores, startStores } from "../store-processes.ts";
import { startStreams } from "../stream-oracle.ts";
import { type Channel, sendTelemetry } from "../telemetry-oracle.ts";
import { problemsOf } from "../workload.ts";
import { checkOut, removeCheckout, runIn } from "./checkout.ts";

const SPEC = {
  name: "npm run upgrade-trial",
  summary: `Upgrades an earlier version to the one in this folder under load, in the order of docs/operations.md: telemetry over HTTP and
MQTT, logins, requests, and a job with its readers. Reports for each step how many requests failed and the longest wait, and at the end
what was acknowledged but is missing.

Both versions inherit one listening socket, as under systemd, so no request may fail. The stores and the broker keep running. Everything
runs on this machine, on free ports and in a temporary folder, and is deleted at the end.`,
  options: {
    from: { type: "string", value: "revision", description: "The earlier version", default: "5e6b9f2" },
    seconds: { type: "number", value: "n", description: "Observe each step for so long", default: 5, min: 1, max: 600 },
  },
} as const;

const ADMIN = { username: "admin@example.com", password: crypto.randomUUID() };
const AGENTS_PER_CHANNEL = 4;
const PAUSE_MS = 50;
const REQUEST_EVERY_MS = 100;
const LOG_IN_EVERY_MS = 1_000;
/** A request waits while one version replaces the other. */
const TIMEOUT_MS = 180_000;

interface Trial {
  /** The folder of the earlier version. */
  before: string;
  dataDir: string;
  stores: Stores;
  socket: SocketHolder;
  seconds: number;
  signal: AbortSignal;
}

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { from, seconds } = command.values;
  const signal = interruption(CLEANUP_NOTICE);
  const folder = mkdtempSync(join(tmpdir(), "controller-upgrade-"));
  const before = join(folder, "before");
  const supervisor = new Supervisor();
  let socket: SocketHolder | undefined;
  try {
    print(`Installing ${from}.`);
    await checkOut(from, before, signal);
    socket = await holdSocket();
    const serviceUrl = `http://127.0.0.1:${socket.port}`;
    const starting = startStores({ dataDir: folder, supervisor, serviceUrl, hasSqldLogin: false });
    const stores = await unlessAborted(starting, signal);
    const trial = { before, dataDir: join(folder, "data"), stores, socket, seconds, signal };
    if (!(await upgrade(trial))) process.exitCode = 1;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    void socket?.close();
    await supervisor.stop();
    await removeCheckout(before);
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Returns whether no request failed and nothing was lost or duplicated. */
async function upgrade({ before, dataDir, stores, socket, seconds, signal }: Trial): Promise<boolean> {
  const env = {
    PORT: String(socket.port),
    LIBSQL_URL: stores.urls.libsql,
    ...clickhouseSettings(stores.clickhouseUrl, stores.clickhouseLogin),
    MQTT_URL: stores.urls.mqtt,
  };
  const settings = { ...env, ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password, LOG_REQUESTS: "failures" };
  const run = (cwd: string): Promise<Product> => Product.run("start", dataDir, settings, { cwd, socket, signal });
  const migrate = (...args: string[]) => runIn(ROOT, "npm", ["run", "migrate", "--", ...args], signal, env);

  print("Starting it.");
  let product = await run(before);
  try {
    const load = await startLoad(product.url, stores);
    let failed = 0;
    const step = async (name: string, work: () => Promise<void>): Promise<void> => {
      const startedMs = performance.now();
      await work();
      const tookS = ((performance.now() - startedMs) / 1000).toFixed(1);
      await sleep(seconds * 1000, undefined, { signal });
      print(`\n${name} (${tookS} s)`);
      failed += reportRequests(load.clients);
    };
    try {
      await step("before the upgrade", async () => {});
      await step("npm run migrate", () => migrate());
      await step("the new version replaces the earlier one", async () => {
        await product.interrupt();
        product = await run(ROOT);
      });
      await step("npm run migrate -- --after-deploy", () => migrate("--after-deploy"));
    } finally {
      await load.stop();
    }
    return (await load.settle()).length === 0 && failed === 0;
  } finally {
    await product.interrupt();
  }
}

async function startLoad(url: string, { urls }: Stores) {
  const newClient = () => new ApiClient(url, { timeoutMs: TIMEOUT_MS });
  const clients = {
    telemetry: newClient(),
    callbacks: newClient(),
    accounts: newClient(),
    charts: newClient(),
    logins: newClient(),
  };
  const token = await clients.logins.logIn(ADMIN.username, ADMIN.password);
  const telemetry = async (channel: Channel) => {
    const prefix = `upgrade-${channel.toLowerCase()}`;
    const agents = await createAgents(clients.accounts, token, prefix);
    return sendTelemetry({ client: clients.telemetry, urls }, agents, { channel, prefix, pauseMs: PAUSE_MS });
  };
  const streams = startStreams(clients.callbacks, { token, readersOfJobs: [2], sendersPerJob: 4, pauseMs: 20 });
  const workloads = [await telemetry("HTTP"), await telemetry("MQTT"), streams];
  const stop = new AbortController();
  const every = async (ms: number, work: () => Promise<unknown>) => {
    for (; !stop.signal.aborted; await sleep(ms)) await work();
  };
  const chart = "/api/v1/metrics/agent_multi_metric_data?agent=upgrade-http-0&metrics=n";
  const body = new URLSearchParams(ADMIN);
  const requests = [
    every(REQUEST_EVERY_MS, () => clients.accounts.attempt("/api/v1/users/me", { token })),
    every(REQUEST_EVERY_MS, () => clients.charts.attempt(chart, { token })),
    every(LOG_IN_EVERY_MS, () => clients.logins.attempt("/api/v1/token/?login_type=user", { body })),
  ];
  return {
    clients,
    async stop() {
      stop.abort();
      await Promise.all([...requests, ...workloads.map((workload) => workload.stop())]);
    },
    /** Prints the verdict of each workload. Returns all violations. */
    async settle(): Promise<string[]> {
      const violations: string[] = [];
      print("");
      for (const { name, acknowledged, settle } of workloads) {
        const problems = problemsOf(name, await settle());
        print(`${name}: acknowledged ${acknowledged}; ${problems.join(", ") || "nothing lost or duplicated"}`);
        violations.push(...problems);
      }
      return violations;
    },
  };
}

/** Creates agents over the API, since the tables differ between versions. */
async function createAgents(client: ApiClient, adminToken: string, prefix: string): Promise<TestAgent[]> {
  const agents: TestAgent[] = [];
  for (let i = 0; i < AGENTS_PER_CHANNEL; i++) {
    const [apId, password] = [`${prefix}-${i}`, crypto.randomUUID()];
    await client.call("/api/v1/agents/", { token: adminToken, body: { ap_id: apId, password, configuration: {} } });
    agents.push({ apId, token: await client.logIn(apId, password, "agent") });
  }
  return agents;
}

/** Prints the requests since the last call. Returns how many failed. */
function reportRequests(clients: Record<string, ApiClient>): number {
  let failed = 0;
  const sum = (counts: readonly [unknown, number][]) => counts.reduce((all, [, n]) => all + n, 0);
  for (const [name, client] of Object.entries(clients)) {
    const outcomes = [...client.statuses, ...client.failures];
    const failures = outcomes.filter(([outcome]) => outcome !== 200);
    const why = failures.length === 0 ? "" : ` (${failures.map(([outcome]) => outcome).join(", ")})`;
    const counts = `${String(sum(outcomes)).padStart(6)} requests, ${sum(failures)} failed${why}`;
    print(`  ${name.padEnd(10)} ${counts}, longest ${(client.slowest.ms / 1000).toFixed(1)} s`);
    // A callback may meet a kept connection that the earlier version is closing. Its idempotency key makes the retry safe.
    if (name !== "callbacks") failed += sum(failures);
    client.reset();
  }
  return failed;
}
