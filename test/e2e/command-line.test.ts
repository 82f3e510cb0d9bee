import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { run, until } from "../../scripts/harness/product.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { ADMIN, ENROLMENT_TOKEN, sharedProduct } from "../support/product.ts";
import { runScript } from "../support/run-script.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

/** The commands and examples that people run while the product runs. */
describe("while npm start runs", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let service: ServiceClient;
  let dataDir: string;

  beforeAll(async () => {
    product = await sharedProduct();
    ({ dataDir } = product);
    service = new ServiceClient(product.url);
  });

  const admin = (args: string[], password = "") => runScript("admin", args, { DATA_DIR: dataDir }, password);

  it("applies changes that the admin command makes", async () => {
    const account = { username: `by-command@example.com`, password: `${SECRET_MARK} by command` };
    expect(await admin(["create", account.username, "--role", "user"], account.password)).toMatchObject({ code: 0 });
    expect(await (await service.me(account)).json()).toMatchObject({ roles: "user" });
    expect(await admin(["promote", account.username])).toMatchObject({ code: 0 });
    expect(await (await service.me(account)).json()).toMatchObject({ roles: "admin" });
    const changed = { ...account, password: `${SECRET_MARK} changed` };
    expect(await admin(["reset-password", account.username], `${changed.password}\n`)).toMatchObject({ code: 0 });
    expect([(await service.logIn(account)).status, (await service.logIn(changed)).status]).toEqual([401, 200]);
    expect((await admin(["list"])).output).toMatch(new RegExp(`${account.username} +admin\n`));
    const [duplicate, short] = await Promise.all([
      admin(["create", account.username], account.password),
      admin(["create", "x@example.com"], "short"),
    ]);
    expect(duplicate).toMatchObject({ code: 1, output: "User already exists\n" });
    expect(short).toMatchObject({ code: 1, output: "A password has 8 to 128 characters.\n" });
  });

  it.each(["HTTP", "MQTT"])("shows the reports of the reference agent over %s", async (channel) => {
    const apId = `reference-${channel}`;
    const agent = spawn("npm", ["run", "--silent", "agent"], {
      env: {
        ...process.env,
        SERVICE_URL: product.url,
        AP_ID: apId,
        AP_PASSWORD: `${SECRET_MARK} reference`,
        ENROLMENT_TOKEN,
        INTERVAL: "0.2",
        LATITUDE: "51.4545",
        LONGITUDE: "-2.5879",
        ...(channel === "MQTT" && { MQTT_URL: `mqtt://127.0.0.1:${product.mqttPort}` }),
      },
    });
    const ended = new Promise((resolve) => agent.once("exit", resolve));
    try {
      const token = await service.tokenOf(ADMIN);
      const headers = { Authorization: `Bearer ${token}` };
      let data = { series: [{ points: [] }] };
      await until(async () => {
        const path = `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=memory_used_pct,network.rx_bytes`;
        const response = await service.call(path, { headers });
        if (response.ok) data = (await response.json()) as typeof data;
        return (data.series[0]?.points.length ?? 0) >= 3;
      });
      expect(data.series.map(({ points }) => points.length > 0)).toEqual([true, true]);
      await until(async () => {
        const agents = (await (await service.call("/api/v1/agents/", { headers })).json()) as {
          ap_id: string;
          online: boolean;
          configuration: object;
        }[];
        const agent = agents.find(({ ap_id }) => ap_id === apId);
        expect(agent?.configuration).toMatchObject({
          interval: 0.2,
          geolocation: { latitude: 51.4545, longitude: -2.5879 },
        });
        // On a busy machine a sample may take longer than three of its intervals.
        return agent?.online ?? false;
      });
      if (channel === "MQTT") {
        const sent = await service.call(`/api/v1/send_command?agent_id=${apId}&command=interval%200.5`, {
          method: "POST",
          headers,
        });
        const { websocket } = (await sent.json()) as { websocket: string };
        const socket = new WebSocket(`${product.url.replace("http", "ws")}${websocket}`, { headers });
        const message = await new Promise((resolve, reject) => {
          socket.once("message", (data) => resolve(JSON.parse(String(data))));
          socket.once("error", reject);
        });
        socket.close();
        expect(message).toMatchObject({
          type: "command",
          final: true,
          data: [{ status: "done", data: { command: "interval 0.5", interval: 0.5 } }],
        });
      }
    } finally {
      agent.kill("SIGTERM");
      await ended;
    }
  });

  it("streams every sample of an agent to a client exactly once although the connection breaks", async () => {
    const [count, written] = [8_000, "16,008"];
    const account = { username: `streamed`, password: `${SECRET_MARK} streamed` };
    const enrolled = { ap_id: account.username, password: account.password, configuration: {} };
    const headers = { Authorization: `Bearer ${ENROLMENT_TOKEN}`, "Content-Type": "application/json" };
    await service.call("/api/v1/agents/public", { method: "POST", headers, body: JSON.stringify(enrolled) });
    const body = new URLSearchParams(account);
    const login = await service.call("/api/v1/token/?login_type=agent", { method: "POST", body });
    headers.Authorization = `Bearer ${((await login.json()) as { access_token: string }).access_token}`;
    const startMs = Date.now() - 3_600_000;
    for (let from = 0; from < count; from += 1_000) {
      const samples = Array.from({ length: 1_000 }, (_, i) => ({
        ts: startMs + (from + i) * 10,
        payload: { x: from + i, y: (from + i) / 7, ...(i === 0 && { note: `"${from}",\nand so on` }) },
      }));
      const report = JSON.stringify({ samples });
      expect(
        (await service.call("/api/v1/agent_update/update", { method: "POST", headers, body: report })).status,
      ).toBe(200);
    }

    // Compressed, the eight thousand samples take about twice that.
    const proxy = await cuttingProxy(Number(new URL(product.url).port), 60_000);
    try {
      const range = ["--from", new Date(startMs).toISOString(), "--to", new Date(startMs + 80_000).toISOString()];
      const file = join(dataDir, "e2e-streamed.csv");
      const { code, output } = await run(
        "npm",
        ["run", "--silent", "stream", "--", "--agent", account.username, ...range, "--format", "csv", "--output", file],
        {
          SERVICE_URL: proxy.url,
          STREAM_USER: account.username,
          STREAM_PASSWORD: account.password,
          LOGIN_TYPE: "agent",
        },
      );
      expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining(`Rows written: ${written}.`) });
      expect(output).toContain("Connection lost");
      expect(proxy.cuts).toBe(1);
      const at = (i: number) => new Date(startMs + i * 10).toISOString();
      const rows = (field: string, value: (i: number) => string, step = 1) =>
        Array.from({ length: count / step }, (_, k) => `${at(k * step)},${field},${value(k * step)}\n`).join("");
      const notes = rows("note", (i) => `"""${i}"",\nand so on"`, 1_000);
      const expected = `time,field,value\n${rows("x", String)}${rows("y", (i) => String(i / 7))}${notes}`;
      expect(readFileSync(file, "utf8")).toBe(expected);
    } finally {
      await proxy.close();
    }
  });

  it("passes the smoke run, which deletes its accounts even if it is interrupted", async () => {
    const args = ["run", "--silent", "smoke", "--", "--url", product.url];
    const env = { SMOKE_USERNAME: ADMIN.username, SMOKE_PASSWORD: ADMIN.password };
    const more = ["--mqtt", `mqtt://127.0.0.1:${product.mqttPort}`, "--emulator"];
    const { code, output } = await run("npm", [...args, ...more], env);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/All \d+ steps passed/) });
    expect(output).not.toContain(ADMIN.password);

    const interrupted = spawn("npm", args, { env: { ...process.env, ...env }, detached: true });
    const ended = new Promise((resolve) => interrupted.once("exit", resolve));
    interrupted.stdout.on("data", (chunk: Buffer) => {
      if (chunk.includes("log in") && interrupted.pid !== undefined) process.kill(-interrupted.pid, "SIGINT");
    });
    expect(await ended).toBe(130);

    const token = await service.tokenOf(ADMIN);
    const headers = { Authorization: `Bearer ${token}` };
    for (const kind of ["users", "agents"]) {
      expect(await (await service.call(`/api/v1/${kind}/`, { headers })).text()).not.toContain("smoke-");
    }
  });
});
