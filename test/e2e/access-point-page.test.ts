import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Browser, Download, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser } from "../../scripts/harness/browser.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";
import { expectAccessible } from "./accessible.ts";

const PASSWORD = `${SECRET_MARK} of an access point`;
const JUST_NOW = /(now|\d+ seconds? ago)$/;

describe("the page of an access point", () => {
  let service: ServiceClient;
  let token: string;
  let browser: Browser;

  beforeAll(async () => {
    service = new ServiceClient((await sharedProduct()).url);
    browser = await launchBrowser();
    token = await service.tokenOf(ADMIN);
  });
  afterAll(async () => {
    await browser?.close();
  });

  /** Creates an access point. Returns its name and what reports for it. */
  async function newAccessPoint(labels: Record<string, string> = {}) {
    const apId = `ap-${randomUUID()}`;
    const agent = { ap_id: apId, password: PASSWORD, configuration: {}, labels };
    await service.post("/api/v1/agents/", token, agent);
    const own = await service.tokenOf({ username: apId, password: PASSWORD }, "agent");
    const report = (body: object) => service.post("/api/v1/agent_update/update", own, body);
    return { apId, report };
  }

  /** Writes one value for an access point as an app, as Telegraf does. Returns the app's name. */
  async function writeAsApp(apId: string): Promise<string> {
    const name = `collector-${randomUUID()}`;
    const app = { app_name: name, api_key: PASSWORD, permissions: { write: true } };
    await service.post("/api/v1/third_party_apps/", token, app);
    const response = await service.call("/api/v1/influx/api/v2/write", {
      method: "POST",
      headers: { Authorization: `Token ${name}:${PASSWORD}` },
      body: `radio,host=${apId} temperature=41`,
    });
    expect(response.status).toBe(204);
    return name;
  }

  /** Opens an address as a user who is signed in. */
  async function open(path: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    const expiresAtMs = Date.now() + 3_600_000;
    const account = { username: ADMIN.username, isAdministrator: true, scopes: ["agents:read", "telemetry:read"] };
    const session = { ...account, token, expiresAtMs, renewAtMs: expiresAtMs };
    await page.addInitScript(`sessionStorage.setItem("session", ${JSON.stringify(JSON.stringify(session))})`);
    await page.goto(`${service.url}/#${path}`);
    return page;
  }

  async function download(page: Page, format: string): Promise<Download> {
    await page.getByText("Download", { exact: true }).click();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: new RegExp(`^${format} `) }).click(),
    ]);
    return file;
  }

  it("shows how its samples arrive, also those that an app sends, and when the last ones came", async () => {
    const { apId, report } = await newAccessPoint();
    const page = await open(`/access-points/${apId}`);
    const sources = page.getByRole("list", { name: "Sources of its samples" });
    await page.getByRole("term").getByText("Source of its samples").waitFor();
    expect(await sources.count()).toBe(0);

    await report({ load: 0.5 });
    await sources.getByRole("listitem").filter({ hasText: "HTTP" }).filter({ hasText: JUST_NOW }).waitFor();
    const app = await writeAsApp(apId);
    await sources
      .getByRole("listitem")
      .filter({ hasText: `InfluxDB line protocol from the app ${app}` })
      .filter({ hasText: JUST_NOW })
      .waitFor();
    expect(await sources.getByRole("listitem").count()).toBe(2);
    await expectAccessible(page);
    await page.context().close();
  });

  it("shows an access point as online that has none of the usual metrics", async () => {
    const { apId } = await newAccessPoint();
    await writeAsApp(apId);
    const page = await open(`/access-points/${apId}`);
    await page.getByText("online", { exact: true }).waitFor();
    await page.locator(".vitals").getByText(JUST_NOW).first().waitFor();
    await page.context().close();
  });

  it("downloads the metrics and the period that its charts show, in each format", async () => {
    const { apId, report } = await newAccessPoint();
    const nowMs = Date.now();
    const samples = [
      { ts: nowMs - 2_000, payload: { load: 0.25, quality: 1 } },
      { ts: nowMs - 1_000, payload: { load: 0.5, quality: 0.5 } },
      // Before the period, and a metric that is not chosen.
      { ts: nowMs - 600_000, payload: { load: 0.75 } },
      { ts: nowMs - 1_500, payload: { other: 1 } },
    ];
    await report({ samples });
    const page = await open(`/access-points/${apId}?window=5m&metrics=load`);
    await page.getByRole("img", { name: /^Load: latest 0.5/ }).waitFor();

    const csv = await download(page, "CSV");
    const day = new Date(nowMs - 300_000).toISOString().slice(0, 10);
    expect(csv.suggestedFilename()).toBe(`${apId}-${day}.csv`);
    const timeOf = (ms: number) => new Date(ms).toISOString();
    expect(readFileSync(await csv.path(), "utf8")).toBe(
      `"time","agent","metric","value"\n"${timeOf(nowMs - 2_000)}","${apId}","load",0.25\n"${timeOf(nowMs - 1_000)}","${apId}","load",0.5\n`,
    );
    const lines = readFileSync(await (await download(page, "NDJSON")).path(), "utf8")
      .trimEnd()
      .split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { value: number }).value)).toEqual([0.25, 0.5]);
    expect(readFileSync(await (await download(page, "Parquet")).path(), "latin1")).toMatch(/^PAR1.*PAR1$/s);
    const arrow = await download(page, "Arrow");
    expect(arrow.suggestedFilename()).toMatch(/\.arrows$/);
    expect([...readFileSync(await arrow.path()).subarray(0, 4)]).toEqual([0xff, 0xff, 0xff, 0xff]);
    await page.context().close();
  });

  it("has a menu of downloads for the keyboard, which Escape and a click elsewhere close", async () => {
    const { apId, report } = await newAccessPoint();
    await report({ load: 0.5 });
    const page = await open(`/access-points/${apId}`);
    const button = page.getByText("Download", { exact: true });
    const csv = page.getByRole("button", { name: /^CSV/ });
    await button.focus();
    await page.keyboard.press("Enter");
    await csv.waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Tab");
    expect(await csv.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press("Escape");
    await csv.waitFor({ state: "hidden" });
    expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
    await button.click();
    await csv.waitFor();
    await page.getByRole("heading", { name: apId }).click();
    await csv.waitFor({ state: "hidden" });
    await page.context().close();
  });

  it("says why a download failed, and downloads when it is repeated", async () => {
    const { apId, report } = await newAccessPoint();
    await report({ load: 0.5 });
    const page = await open(`/access-points/${apId}`);
    let isDown = true;
    await page.route("**/api/v1/metrics/download?*", async (route) => {
      if (!isDown) return await route.continue();
      const headers = { "X-Request-Id": "1" };
      return await route.fulfill({ status: 503, headers, json: { detail: "telemetry store is unavailable" } });
    });
    await page.getByText("Download", { exact: true }).click();
    await page.getByRole("button", { name: /^CSV/ }).click();
    await page.getByRole("alert").getByText("The download failed. The service is temporarily unavailable.").waitFor();
    await expectAccessible(page);
    isDown = false;
    const csv = await download(page, "CSV");
    expect(readFileSync(await csv.path(), "utf8")).toContain(`"${apId}","load",0.5`);
    expect(await page.getByText("The download failed").count()).toBe(0);
    await page.context().close();
  });

  it("has a counterpart for the charts of a site, which downloads the points of its access points", async () => {
    const site = `site-${randomUUID()}`;
    const [one, two] = [await newAccessPoint({ site }), await newAccessPoint({ site })];
    for (const { report } of [one, two]) await report({ load: 0.5, other: 1 });
    const page = await open(`/?selector=${encodeURIComponent(`site=${site}`)}`);
    await page.getByRole("heading", { name: "Charts" }).waitFor();
    const rows = readFileSync(await (await download(page, "CSV")).path(), "utf8")
      .trimEnd()
      .split("\n")
      .slice(1);
    expect(rows.map((row) => row.split(",").slice(1).join()).toSorted()).toEqual(
      [one, two].map(({ apId }) => `"${apId}","load",0.5`).toSorted(),
    );
    await page.context().close();
  });
});
