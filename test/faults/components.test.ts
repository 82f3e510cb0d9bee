import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { WebSocket } from "ws";
import { makeAgents, type TestAgent } from "../../scripts/harness/accounts.ts";
import { launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { KILL_SUITES, killUnderLoad } from "../../scripts/harness/faults/kill-loop.ts";
import { kill, plainTarget, underLoad } from "../../scripts/harness/faults/under-load.ts";
import { Product, until } from "../../scripts/harness/product.ts";
import { holdSocket, type SocketHolder } from "../../scripts/harness/socket-holder.ts";
import type { MultiMetricData } from "../../src/schemas/metrics.ts";
import { dataFolderWith } from "../support/database-image.ts";
import { ADMIN } from "../support/product.ts";
import { SECRET_MARK, SECRETS } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

const SETTINGS = {
  ADMIN_USERNAME: ADMIN.username,
  ADMIN_PASSWORD: ADMIN.password,
  SIGNUP: "open",
  NEW_USERS: "operator",
  // The receiver of webhooks is on this machine.
  WEBHOOK_NETWORKS: "private",
};

/** Components die, hang and restart here. `npm run faults` does the same for longer, with more kinds of faults. */
describe("npm start on an inherited socket", () => {
  let dataDir: string;
  let socket: SocketHolder;
  let product: Product;
  let service: ServiceClient;

  beforeAll(async () => {
    dataDir = dataFolderWith(inject("databaseImage"));
    socket = await holdSocket();
    product = await Product.run("start", dataDir, SETTINGS, { socket });
    service = new ServiceClient(product.url);
  });
  afterAll(async () => {
    if (product?.isRunning) await product.interrupt();
    await socket?.close();
    rmSync(dataDir, { recursive: true, force: true });
    expect(product.output).not.toMatch(SECRETS);
  });

  it("keeps every account whose creation it confirmed while sqld is killed", async () => {
    const names = Array.from({ length: 24 }, (_, i) => `survivor-${i}@example.com`);
    const statuses = new Map<string, number>();
    const killing = (async () => {
      await until(() => statuses.size >= 6);
      process.kill(product.pidOf("sqld"), "SIGKILL");
    })();
    const queue = names.values();
    const worker = async () => {
      for (const username of queue) {
        const response = await service.postJson("/api/v1/users/signup", {
          username,
          password: `${SECRET_MARK} survivor`,
        });
        statuses.set(username, response.status);
      }
    };
    await Promise.all([worker(), worker(), worker(), killing]);
    await service.untilReadyzSays(200);
    const withStatus = (status: number) => names.filter((name) => statuses.get(name) === status);
    expect(withStatus(200).length + withStatus(503).length).toBe(names.length);
    expect(withStatus(503).length).toBeGreaterThan(0);

    const token = await service.tokenOf(ADMIN);
    const headers = { Authorization: `Bearer ${token}` };
    const users = (await (await service.call("/api/v1/users/", { headers })).json()) as { username: string }[];
    const existing = users.map(({ username }) => username).filter((username) => names.includes(username));
    expect(existing).toEqual(expect.arrayContaining(withStatus(200)));
    for (const username of names) {
      const query = new URLSearchParams({ object: `user:${username}` });
      const entries = (await (await service.call(`/api/v1/audit/?${query}`, { headers })).json()) as unknown[];
      expect(entries).toHaveLength(existing.includes(username) ? 1 : 0);
    }
  });

  it("runs emulated access points, also after their emulator is killed, and they carry out commands", async () => {
    const token = await service.tokenOf(ADMIN);
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const spec = { num_access_points: 2, locations: ["Bristol, UK"], num_devices: 10, duration: 15 };
    const emulators = ["5G", "WiFi", "LiFi"].map((access_point_type) => ({ access_point_type, ...spec }));
    const response = await service.call("/api/v1/emulator/spinup", {
      method: "POST",
      headers,
      body: JSON.stringify({ emulators }),
    });
    const { job_number, websocket, ap_ids } = (await response.json()) as {
      job_number: string;
      websocket: string;
      ap_ids: string[];
    };
    const messages: { final: boolean; data: { state: string; samples: number }[] }[] = [];
    const socket = new WebSocket(`${product.url.replace("http", "ws")}${websocket}`, { headers });
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    const loads = async (apId: string | undefined) => {
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=load`;
      const { series } = (await (await service.call(path, { headers })).json()) as {
        series: { points: { value: number }[] }[];
      };
      return series[0]?.points.map(({ value }) => value) ?? [];
    };
    for (const apId of ap_ids) await until(async () => (await loads(apId)).length >= 2);

    process.kill(product.pidOf("emulator"), "SIGKILL");
    await product.says(/emulator ended unexpectedly \(SIGKILL\)[\s\S]*emulator is back/);
    const path = `/api/v1/send_command?agent_id=${ap_ids[0]}&command=power_off`;
    const { job_number: command } = (await (await service.call(path, { method: "POST", headers })).json()) as {
      job_number: string;
    };
    await until(async () => (await loads(ap_ids[0])).at(-1) === 0);
    const job = (await (await service.call(`/api/v1/jobs/${command}`, { headers })).json()) as { state: string };
    expect(job.state).toBe("done");

    await until(() => messages.some(({ final }) => final), 60_000);
    socket.close();
    expect(messages.at(-1)?.data[0]).toMatchObject({ state: "done", agents: 6 });
    const accepted = messages.at(-1)?.data[0]?.samples ?? 0;
    // Every sample that the broker accepted must be stored, also those from before the kill.
    await until(async () => {
      const counts = await Promise.all(ap_ids.map(async (apId) => (await loads(apId)).length));
      return counts.reduce((sum, count) => sum + count, 0) >= accepted;
    });
    const removed = await service.call(`/api/v1/emulator/${job_number}`, { method: "DELETE", headers });
    expect(await removed.json()).toMatchObject({ detail: "6 agents removed" });
  });

  it("loses and duplicates no acknowledged sample while ClickHouse is killed", async () => {
    const [outcome] = await Promise.all([
      killUnderLoad(plainTarget(product), KILL_SUITES.telemetry, "clickhouse", { times: 1 }),
      service.untilDown("clickhouse"),
    ]);
    expect(outcome).toMatchObject({ lost: 0, duplicates: 0, violations: [] });
    const kinds = Object.entries(outcome.kinds ?? {}).map(([kind, count]) => [kind, count > 0]);
    expect(Object.fromEntries(kinds)).toEqual({
      "telemetry over HTTP": true,
      "telemetry over MQTT": true,
      "account reads": true,
    });
  });

  it("loses no samples, callbacks, commands or accounts while workerd is killed", async () => {
    const target = plainTarget(product);
    const { acknowledged, lost, duplicates, violations } = await underLoad(target, kill(target, "worker"));
    expect({ lost, duplicates, violations }).toEqual({ lost: 0, duplicates: 0, violations: [] });
    expect(acknowledged).toBeGreaterThan(0);
  });

  it("loses no alert, and delivers each in the order of its agent, while workerd is killed", async () => {
    const outcome = await killUnderLoad(plainTarget(product), KILL_SUITES.alerts, "worker", { times: 1 });
    expect(outcome).toMatchObject({ lost: 0, duplicates: 0, violations: [] });
    expect(outcome.acknowledged).toBeGreaterThan(0);
  });

  it.each([
    ["sqld", "libsql"],
    ["broker", "broker"],
    ["passwords", "passwords"],
  ])("keeps running when %s is killed, reports it, and restarts it", async (part, name) => {
    const killed = product.pidOf(part);
    process.kill(killed, "SIGKILL");
    await service.untilDown(name);
    expect((await service.call("/healthz")).status).toBe(200);
    await product.says(new RegExp(`${part} ended unexpectedly \\(SIGKILL\\)[^]*${part} is back`));
    await service.untilReadyzSays(200);
    expect(product.pidOf(part)).not.toBe(killed);
    expect((await service.me(ADMIN)).status).toBe(200);
  });

  it.each([
    ["sqld", "libsql"],
    ["clickhouse", "clickhouse"],
    ["broker", "broker"],
    ["passwords", "passwords"],
  ])("responds within two seconds while %s hangs", async (part, name) => {
    const pid = product.pidOf(part);
    process.kill(pid, "SIGSTOP");
    try {
      const startedMs = Date.now();
      const [ready, signup, health] = await Promise.all([
        service.call("/readyz"),
        service.postJson("/api/v1/users/signup", { username: `${part}@example.com`, password: "long enough" }),
        service.call("/healthz"),
      ]);
      expect(Date.now() - startedMs).toBeLessThan(2_000);
      expect(ready.status).toBe(503);
      expect(await ready.json()).toMatchObject({ detail: `Down: ${name}` });
      expect(signup.status).toBe(["sqld", "passwords"].includes(part) ? 503 : 200);
      expect(health.status).toBe(200);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await service.untilReadyzSays(200);
  });

  it("rejects only logins while the password hasher is down", async () => {
    const headers = { Authorization: `Bearer ${await service.tokenOf(ADMIN)}` };
    process.kill(product.pidOf("passwords"), "SIGKILL");
    const startedMs = Date.now();
    const [login, me] = await Promise.all([service.logIn(ADMIN), service.call("/api/v1/users/me", { headers })]);
    expect(Date.now() - startedMs).toBeLessThan(2_000);
    expect([login.status, login.headers.get("Retry-After"), me.status]).toEqual([503, "2", 200]);
    await until(async () => (await service.logIn(ADMIN)).status === 200);
  });

  it("accepts reports while ClickHouse hangs, shows them and says which data is missing, and has everything afterwards", async () => {
    const [agent] = await makeAgents(dataDir, "outage", 1);
    const { apId, token } = agent as TestAgent;
    const report = async (n: number) =>
      (await service.send("POST", "/api/v1/agent_update/update", token, { n })).status;
    const adminToken = await service.tokenOf(ADMIN);
    const chart = async (window: string) => {
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=n&window=${window}`;
      const response = (await (await service.send("GET", path, adminToken)).json()) as MultiMetricData;
      return { values: response.series[0]?.points.map(({ value }) => value), completeFrom: response.complete_from };
    };
    expect(await report(1)).toBe(200);
    await until(async () => {
      const metrics = await (await service.send("GET", "/metrics", adminToken)).text();
      return /controller_ingest_waiting_samples\{shard="0"\} 0$/m.test(metrics);
    });
    const browser = await launchBrowser();
    const { page } = await visit(browser, `${product.url}/#/access-points/${apId}?window=1h`);
    await page.getByLabel("E-mail").fill(ADMIN.username);
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    const pid = product.pidOf("clickhouse");
    const notice = page
      .getByRole("status")
      .filter({ hasText: "is missing because the telemetry store does not respond" });
    process.kill(pid, "SIGSTOP");
    try {
      const startedMs = Date.now();
      expect(await report(2)).toBe(200);
      expect(Date.now() - startedMs).toBeLessThan(1_000);
      await until(async () => (await chart("1h")).completeFrom !== undefined);
      expect((await chart("1h")).values).toEqual([2]);
      await page.reload();
      await notice.waitFor();
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await notice.waitFor({ state: "detached", timeout: 60_000 });
    await browser.close();
    await service.untilReadyzSays(200);
    for (const window of ["5m", "1h"]) expect(await chart(window)).toEqual({ values: [1, 2], completeFrom: undefined });
  });

  it("serves every request, also those that arrive during a restart", async () => {
    const token = await service.tokenOf(ADMIN);
    const [agent] = await makeAgents(dataDir, "exchanged", 1);
    const { url } = product;
    const statuses: (number | string)[] = [];
    let isDone = false;
    // Each request needs both stores and opens its own connection.
    const poll = async (): Promise<void> => {
      for (; !isDone; await sleep(PAUSE_MS)) {
        const response = fetch(`${url}/api/v1/metrics/agent_multi_metric_data?agent=${agent?.apId}&metrics=n`, {
          headers: { Authorization: `Bearer ${token}`, Connection: "close" },
        });
        statuses.push(
          await response.then(
            ({ status }) => status,
            (error: Error) => String(error.cause ?? error),
          ),
        );
      }
    };
    const polling = Array.from({ length: CLIENTS }, poll);

    await product.interrupt();
    const before = statuses.length;
    const waiting = fetch(`${url}/healthz`);
    await sleep(500);
    expect(statuses.length).toBeLessThanOrEqual(before + CLIENTS);
    product = await Product.run("start", dataDir, SETTINGS, { socket });

    expect((await waiting).status).toBe(200);
    isDone = true;
    await Promise.all(polling);
    expect(statuses.length).toBeGreaterThan(before);
    expect([...new Set(statuses)]).toEqual([200]);
  }, 300_000);

  it("rejects a PORT that differs from the port of the socket", async () => {
    const another = Product.run("start", join(dataDir, "another"), { PORT: "1" }, { socket });
    await expect(another).rejects.toThrow(`PORT is 1, but controller.socket listens on ${socket.port}.`);
  });
});

const CLIENTS = 4;
const PAUSE_MS = 20;
