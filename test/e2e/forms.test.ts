import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { Product, run, until } from "../../scripts/harness/product.ts";
import { listeningPortsOf, processesWith } from "../support/processes.ts";
import { ADMIN, ENROLMENT_TOKEN } from "../support/product.ts";
import { runScript } from "../support/run-script.ts";
import { SECRET_MARK, SECRETS } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";
import { expectAccessible } from "./accessible.ts";

const USER = { username: "first@example.com", password: `${SECRET_MARK} first user's password` };
const SETTINGS = { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password, ENROLMENT_TOKEN };

const expectStopOnInterrupt = async (product: Product): Promise<void> => {
  const socket = new WebSocket(`ws://127.0.0.1:${product.mqttWsPort}`, "mqtt");
  socket.on("error", () => {});
  await new Promise((resolve) => socket.once("open", resolve));
  expect(processesWith(product.marker).length).toBeGreaterThan(3);
  const { exitCode, tookMs } = await product.interrupt();
  expect(exitCode).toBe(0);
  expect(tookMs).toBeLessThan(5_000);
  expect(processesWith(product.marker)).toEqual([]);
  expect(product.output).toMatch(/Stopping\.\nStopped\.\n$/);
  expect(product.output).not.toMatch(SECRETS);
};

/** The first steps of a new user, in an empty data folder, and the data after a restart. */
describe("npm run dev in an empty folder", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "controller-dev-"));
  let product: Product;
  let service: ServiceClient;
  let browser: Browser;

  beforeAll(async () => {
    [product, browser] = await Promise.all([Product.run("dev", dataDir, SETTINGS), launchBrowser()]);
    service = new ServiceClient(product.url);
    expect((await service.postJson("/api/v1/users/signup", USER)).status).toBe(200);
  });
  afterAll(async () => {
    await browser?.close();
    if (product?.isRunning) await product.interrupt();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it("starts every component, and signs in its user and the first administrator", async () => {
    expect(await service.untilReadyzSays(200)).toMatchObject({
      status: "ready",
      parts: { libsql: "up", clickhouse: "up", broker: "up", passwords: "up" },
    });
    expect(await (await service.me(USER)).json()).toMatchObject({ username: USER.username, roles: "user" });
    expect(await (await service.me(ADMIN)).json()).toMatchObject({ username: ADMIN.username, roles: "admin" });
  });

  it("responds to 100 concurrent requests", async () => {
    const token = await service.tokenOf(USER);
    // On a busy machine wrangler's proxy fails some requests itself, with a 500 without a request id.
    const statusOf = async (): Promise<number> => {
      for (let tries = 0; ; tries++) {
        const response = await service.send("GET", "/api/v1/users/me", token);
        if (response.headers.has("X-Request-Id") || tries === 5) return response.status;
        await sleep(200);
      }
    };
    expect(new Set(await Promise.all(Array.from({ length: 100 }, statusOf)))).toEqual(new Set([200]));
  });

  it("streams every sample of an agent to a client, exactly once", async () => {
    const account = { username: "streamed", password: `${SECRET_MARK} streamed` };
    const agent = { ap_id: account.username, password: account.password, configuration: {} };
    await service.post("/api/v1/agents/public", ENROLMENT_TOKEN, agent);
    const token = await service.tokenOf(account, "agent");
    const startMs = Date.now() - 3_600_000;
    const samples = Array.from({ length: 1_000 }, (_, i) => ({ ts: startMs + i * 10, payload: { x: i } }));
    await service.post("/api/v1/agent_update/update", token, { samples });
    const file = join(dataDir, "streamed.csv");
    const range = ["--from", new Date(startMs).toISOString(), "--to", new Date(startMs + 10_000).toISOString()];
    const { code, output } = await run(
      "npm",
      ["run", "--silent", "stream", "--", "--agent", account.username, ...range, "--format", "csv", "--output", file],
      {
        SERVICE_URL: product.url,
        STREAM_USER: account.username,
        STREAM_PASSWORD: account.password,
        LOGIN_TYPE: "agent",
      },
    );
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining("Rows written: 1,000.") });
    const rows = samples.map(({ ts, payload }) => `${new Date(ts).toISOString()},x,${payload.x}\n`).join("");
    expect(readFileSync(file, "utf8")).toBe(`time,field,value\n${rows}`);
    const deletion = await service.send("DELETE", `/api/v1/agents/${agent.ap_id}`, await service.tokenOf(ADMIN));
    expect(deletion.status).toBe(200);
  });

  it("exposes neither an inspector of the Worker nor an explorer of its objects", async () => {
    const ports = listeningPortsOf(product.marker);
    expect(ports).toEqual(expect.arrayContaining([Number(new URL(product.url).port), product.mqttPort]));
    const inspected = await Promise.all(
      ports.map(async (port) => {
        const signal = AbortSignal.timeout(5_000);
        const response = await fetch(`http://127.0.0.1:${port}/json`, { signal }).catch(() => undefined);
        return [port, (await response?.text().catch(() => ""))?.includes("webSocketDebuggerUrl") ?? false];
      }),
    );
    expect(inspected.filter(([, hasInspector]) => hasInspector)).toEqual([]);
    for (const path of ["/cdn-cgi/explorer/", "/cdn-cgi/explorer/api", "/cdn-cgi/local/explorer/api"])
      expect((await service.call(path)).status).toBe(404);
  });

  it("leads a new user to the live chart of an emulated LiFi access point", async () => {
    const { page, pageErrors, close } = await visit(browser, product.url);
    await page.getByRole("link", { name: "Create an account" }).click();
    await page.getByLabel("E-mail").fill("newcomer@example.com");
    await page.getByLabel("Password").fill(`${SECRET_MARK} newcomer`);
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByText("No access points yet").waitFor();
    await expectAccessible(page);
    await page
      .getByRole("link", { name: /emulated/ })
      .first()
      .click();
    // The service loads its list of towns after its first start.
    const token = await service.tokenOf(USER);
    const status = async () => (await service.send("GET", "/api/v1/places?text=Bristol", token)).status;
    await expect.poll(status, { timeout: 60_000, interval: 500 }).toBe(200);
    // The form's defaults: five LiFi access points in Bristol.
    await page.getByRole("button", { name: "Start emulation" }).click();
    await page.getByRole("heading", { name: "5 access points created" }).waitFor();
    await page.getByText("5 of 5 access points online").waitFor({ timeout: 60_000 });
    const link = page.getByRole("link", { name: /^emu-lifi-/ }).first();
    const apId = (await link.textContent()) ?? "";
    await link.click();
    await page.getByRole("heading", { name: apId }).waitFor();
    // Not the load, which may be 0 for minutes at night.
    const chart = page.getByRole("img", { name: /^Signal to noise: latest/ });
    await chart.waitFor();
    const earlier = await chart.getAttribute("aria-label");
    await until(async () => (await chart.getAttribute("aria-label")) !== earlier);
    await expectAccessible(page);
    await close();
    expect(pageErrors).toEqual([]);
  });

  it("stops on Ctrl-C; npm start then uses the same data and accepts tokens of the previous key", async () => {
    const earlierToken = await service.tokenOf(USER);
    await expectStopOnInterrupt(product);
    for (const step of ["Step 1 of 2", "Step 2 of 2"]) {
      expect((await runScript("admin", ["rotate-keys"], { DATA_DIR: dataDir })).output).toContain(step);
    }
    const next = await Product.run("start", dataDir, SETTINGS);
    try {
      const again = new ServiceClient(next.url);
      expect(await (await again.me(USER)).json()).toMatchObject({ username: USER.username, roles: "user" });
      const { keys } = (await (await again.call("/.well-known/jwks.json")).json()) as { keys: { kid: string }[] };
      expect(keys).toHaveLength(2);
      expect(keyOf(await again.tokenOf(USER))).toBe(keys[0]?.kid);
      expect(keyOf(earlierToken)).toBe(keys[1]?.kid);
      expect((await again.send("GET", "/api/v1/users/me", earlierToken)).status).toBe(200);
    } finally {
      await expectStopOnInterrupt(next);
    }
  });
});

const keyOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()) as { kid: string }).kid;
