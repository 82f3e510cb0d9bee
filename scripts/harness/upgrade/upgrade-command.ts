import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseCommand, print, runCommand, UserError } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { clickhouseSettings } from "../../../src/programs/stack/components/clickhouse-access.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { TestAgent } from "../accounts.ts";
import { ApiClient } from "../client.ts";
import { Product, run } from "../product.ts";
import { holdSocket } from "../socket-holder.ts";
import { type Stores, startStores } from "../store-processes.ts";
import { startStreams } from "../stream-oracle.ts";
import { type Channel, sendTelemetry } from "../telemetry-oracle.ts";
import { problemsOf } from "../workload.ts";

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

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { from, seconds } = command.values;
  const signal = interruption(CLEANUP_NOTICE);
  const folder = mkdtempSync(join(tmpdir(), "controller-upgrade-"));
  const before = join(folder, "before");
  const supervisor = new Supervisor();
  const socket = await holdSocket();
  try {
    print(`Installing ${from}.`);
    await runIn(ROOT, "git", ["worktree", "add", "--detach", "--force", before, from], signal);
    await runIn(before, "npm", ["ci", "--no-audit", "--no-fund"], signal);
    const serviceUrl = `http://127.0.0.1:${socket.port}`;
    const starting = startStores({ dataDir: folder, supervisor, serviceUrl, hasSqldLogin: false });
    const stores = await unlessAborted(starting, signal);
    const env = {
      PORT: String(socket.port),
      LIBSQL_URL: stores.urls.libsql,
      ...clickhouseSettings(stores.clickhouseUrl, stores.clickhouseLogin),
      MQTT_URL: stores.urls.mqtt,
    };
    const admin = { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password };
    const settings = { ...env, ...admin, LOG_REQUESTS: "failures" };
    const start = (cwd: string) => Product.run("start", join(folder, "data"), settings, { cwd, socket, signal });
    const migrate = (...args: string[]) => runIn(ROOT, "npm", ["run", "migrate", "--", ...args], signal, env);
    print("Starting it.");
    let product = await start(before);
    const upgrade = async () => {
      const load = await startLoad(product.url, stores, seconds, signal);
      try {
        await load.observe("before the upgrade", async () => {});
        await load.observe("npm run migrate", () => migrate());
        await load.observe("the new version replaces the earlier one", async () => {
          await product.interrupt();
          product = await start(ROOT);
        });
        await load.observe("npm run migrate -- --after-deploy", () => migrate("--after-deploy"));
      } finally {
        await load.stop();
      }
      return await load.isComplete();
    };
    if (!(await upgrade().finally(() => product.interrupt()))) process.exitCode = 1;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    void socket.close();
    await supervisor.stop();
    await run("git", ["worktree", "remove", "--force", before], {}, "", { cwd: ROOT });
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Runs a command in a folder. Throws with its output if it fails. */
async function runIn(cwd: string, command: string, args: string[], signal: AbortSignal, env = {}): Promise<void> {
  const { code, output } = await run(command, args, env, "", { cwd, signal });
  if (code !== 0) throw new UserError(`${command} ${args.join(" ")} failed:\n${output}`);
}

async function startLoad(url: string, { urls }: Stores, seconds: number, signal: AbortSignal) {
  const newClient = () => new ApiClient(url, { timeoutMs: TIMEOUT_MS });
  const [telemetry, callbacks, accounts] = [newClient(), newClient(), newClient()];
  const [charts, logins] = [newClient(), newClient()];
  const token = await logins.logIn(ADMIN.username, ADMIN.password);
  const send = async (channel: Channel) => {
    const prefix = `upgrade-${channel.toLowerCase()}`;
    const agents: TestAgent[] = [];
    // Over the API, since the tables differ between versions.
    for (const apId of Array.from({ length: AGENTS_PER_CHANNEL }, (_, i) => `${prefix}-${i}`)) {
      const password = crypto.randomUUID();
      await accounts.call("/api/v1/agents/", { token, body: { ap_id: apId, password, configuration: {} } });
      agents.push({ apId, token: await accounts.logIn(apId, password, "agent") });
    }
    return sendTelemetry({ client: telemetry, urls }, agents, { channel, prefix, pauseMs: PAUSE_MS });
  };
  const streams = startStreams(callbacks, { token, readersOfJobs: [2], sendersPerJob: 4, pauseMs: 20 });
  const workloads = [await send("HTTP"), await send("MQTT"), streams];
  const stop = new AbortController();
  const every = async (ms: number, work: () => Promise<unknown>) => {
    for (; !stop.signal.aborted; await sleep(ms)) await work();
  };
  const chart = "/api/v1/metrics/agent_multi_metric_data?agent=upgrade-http-0&metrics=n";
  const body = new URLSearchParams(ADMIN);
  const requests = [
    every(REQUEST_EVERY_MS, () => accounts.attempt("/api/v1/users/me", { token })),
    every(REQUEST_EVERY_MS, () => charts.attempt(chart, { token })),
    every(LOG_IN_EVERY_MS, () => logins.attempt("/api/v1/token/?login_type=user", { body })),
  ];
  let failed = 0;
  return {
    /** Does a step of the upgrade, and prints the requests since the step before. */
    async observe(name: string, step: () => Promise<void>): Promise<void> {
      const startedMs = performance.now();
      await step();
      const tookS = ((performance.now() - startedMs) / 1000).toFixed(1);
      await sleep(seconds * 1000, undefined, { signal });
      print(`\n${name} (${tookS} s)`);
      failed += reportRequests({ telemetry, callbacks, accounts, charts, logins });
    },
    async stop(): Promise<void> {
      stop.abort();
      await Promise.all([...requests, ...workloads.map((workload) => workload.stop())]);
    },
    /** Prints the verdict of each workload. Returns whether no request failed and nothing was lost or duplicated. */
    async isComplete(): Promise<boolean> {
      print("");
      for (const { name, acknowledged, settle } of workloads) {
        const problems = problemsOf(name, await settle());
        print(`${name}: acknowledged ${acknowledged}; ${problems.join(", ") || "nothing lost or duplicated"}`);
        failed += problems.length;
      }
      return failed === 0;
    },
  };
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
