import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrowserSession, launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { ApiClient, untilTownsLoaded } from "../../scripts/harness/client.ts";
import type { NetworkEvent } from "../../src/schemas/events.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { expectAccessible } from "./accessible.ts";

/** Other tests on the same product have access points of their own. */
const SITE = "alerts-e2e/roof";
const RULE = "Test: any load";
/** Evaluation, upload, and a request of the page. The machine may be busy. */
const FIRED_TIMEOUT_MS = 60_000;

/** Alerts, rules and notifications in a real browser, on the whole product, with emulated access points. */
describe("alerts on the dashboard", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let client: ApiClient;
  let token: string;
  let job: string;
  let apId: string;
  let browser: Browser;
  let visitor: BrowserSession;
  let page: Page;
  let receiver: Server;
  const received: NetworkEvent[] = [];

  beforeAll(async () => {
    [product, browser] = await Promise.all([sharedProduct(), launchBrowser()]);
    client = new ApiClient(product.url);
    token = await client.logIn(ADMIN.username, ADMIN.password);
    await untilTownsLoaded(client, token);
    const emulators = [
      { access_point_type: "LiFi", locations: ["Bristol"], num_access_points: 1, num_devices: 5, duration: 900 },
    ];
    const spunUp = await client.call<{ job_number: string; ap_ids: string[] }>("/api/v1/emulator/spinup", {
      ...{ token, body: { emulators } },
    });
    [job, apId] = [spunUp.job_number, spunUp.ap_ids[0] ?? ""];
    await client.call(`/api/v1/agents/${apId}/labels`, { method: "PUT", token, body: { site: SITE } });
    const spec = { selector: `site=${SITE}`, condition: { metric: "load", op: ">=", value: 0 }, severity: "critical" };
    await client.call("/api/v1/alerts/rules", { token, body: { name: RULE, enabled: false, spec } });
    receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on("end", () => {
        received.push(JSON.parse(body) as NetworkEvent);
        response.writeHead(204).end();
      });
    });
    await once(receiver.listen(0, "127.0.0.1"), "listening");
  });
  afterAll(async () => {
    receiver?.close();
    await browser?.close();
    const rules = await client.call<{ id: string; name: string }[]>("/api/v1/alerts/rules", { token });
    for (const { id, name } of rules) {
      if (name.startsWith("Test: ")) await client.call(`/api/v1/alerts/rules/${id}`, { method: "DELETE", token });
    }
    await client.call(`/api/v1/emulator/${job}`, { method: "DELETE", token });
  });
  beforeEach(async () => {
    visitor = await visit(browser, product.url);
    page = visitor.page;
    await page.getByLabel("E-mail").fill(ADMIN.username);
    await page.getByLabel("Password").fill(ADMIN.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
  });
  afterEach(async () => {
    await visitor.close();
    // On a busy machine a store may time out. The page shows an error and repeats the request.
    expect(visitor.pageErrors.filter((error) => !/50[34]/.test(error))).toEqual([]);
  });

  const tab = (name: string) => page.getByRole("navigation", { name: "Alerts" }).getByRole("link", { name });
  const alert = () => page.getByRole("listitem", { name: new RegExp(apId) });

  it("fire when a rule is enabled, are counted by the bell, and are acknowledged and silenced", async () => {
    const bell = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /^Alerts/ });
    await bell.click();
    await tab("Rules").click();
    await page.getByRole("button", { name: `Enable: ${RULE}` }).click();
    await page.getByRole("button", { name: `Disable: ${RULE}` }).waitFor();
    await expectAccessible(page);
    await tab("Current").click();
    const site = page.getByRole("region", { name: SITE });
    await site.getByText("1 critical").waitFor({ timeout: FIRED_TIMEOUT_MS });
    await expect.poll(async () => await bell.textContent(), { timeout: FIRED_TIMEOUT_MS }).toMatch(/^Alerts[1-9]/);
    await alert()
      .getByRole("img", { name: /^load when/ })
      .waitFor();
    await expectAccessible(page);

    await alert()
      .getByRole("button", { name: /^Acknowledge/ })
      .click();
    await alert().getByText(`Acknowledged by ${ADMIN.username}`).waitFor();
    await alert()
      .getByRole("button", { name: /^Silence/ })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Duration").selectOption("1 day");
    await dialog.getByLabel("Reason (optional)").fill("Works on the roof");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Silence", exact: true }).click();
    await alert()
      .getByText(/Silenced until .+: Works on the roof/)
      .waitFor();

    // The filter is in the address, and hides alerts of other sites.
    const filter = page.getByRole("combobox", { name: "Filter by labels" });
    await filter.fill("site=elsewhere");
    await filter.press("Enter");
    await page.getByText("No alerts match this filter").waitFor();
    await page.goBack();
    await alert().getByRole("link", { name: "Open access point" }).click();
    const events = page.getByRole("region", { name: "Events" });
    await events.getByText("Alert acknowledged").waitFor();
    await events.getByText("Alert fired").waitFor();
    await expectAccessible(page);

    await page.goto(`${product.url}/#/alerts/silences`);
    await page.getByRole("button", { name: new RegExp(`^End: ap_id=${apId}`) }).click();
    await dialog.getByRole("button", { name: "End silence" }).click();
    await page.getByText("No silences yet").waitFor();
  });

  it("are predicted by the editor of rules, which draws the backtest while typing", async () => {
    await page.goto(`${product.url}/#/alerts/rules`);
    await page.getByRole("link", { name: RULE }).click();
    const result = page.getByRole("region", { name: "Test on the past" });
    await result.getByRole("status").getByText("1 alert on 1 access point").waitFor({ timeout: 30_000 });
    await result.getByRole("img", { name: `load of ${apId} in the last 24 h: 1 alert` }).waitFor();
    await expectAccessible(page);

    await page.getByLabel("Condition: value").fill("7");
    await result.getByText("No alerts on 1 access point").waitFor({ timeout: 30_000 });
    await page.getByLabel("Condition: kind").selectOption("Any of several");
    await page.getByLabel("Condition 2: time without a report", { exact: true }).fill("2");
    await page.getByRole("button", { name: "Add condition" }).click();
    await page.getByLabel("Condition 3: kind").selectOption("Metric against other days");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Remove condition 3" }).click();
    await page.getByLabel("Name").fill("LiFi: offline");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText("There is a rule with this name.").waitFor();
    await page.getByLabel("Access points (selector)").fill("@unknown");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByRole("alert").getByText("a group that does not exist").waitFor();
    await result.getByText("Correct the rule to test it.").waitFor();
    await page.getByLabel("Access points (selector)").fill(`site=${SITE}`);
    await page.getByLabel("Name").fill("Test: high load");
    await page.getByRole("button", { name: "Save rule" }).click();
    await page.getByText("load at least 7 or no report for 2 min").waitFor();
    visitor.pageErrors = visitor.pageErrors.filter((error) => !/409|422/.test(error));

    // The alert of the earlier condition has ended.
    await page.goto(`${product.url}/#/alerts/history?selector=${encodeURIComponent(`site=${SITE}`)}`);
    await page.getByRole("cell", { name: RULE }).first().waitFor();
    await expectAccessible(page);
  });

  it("are sent to a webhook, whose key is shown once and whose test arrives", async () => {
    await page.goto(`${product.url}/#/alerts/notifications`);
    await page.getByRole("button", { name: "Create notification" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Night shift");
    await dialog.getByLabel("Send to").selectOption("Webhook");
    const { port } = receiver.address() as AddressInfo;
    await dialog.getByLabel("Address (URL)").fill("no address");
    await dialog.locator("button[type=submit]").click();
    await dialog.getByText("must be a URL").waitFor();
    await dialog.getByLabel("Address (URL)").fill(`http://127.0.0.1:${port}/events`);
    await expectAccessible(page);
    await dialog.locator("button[type=submit]").click();
    await dialog.getByText("It is not shown again").waitFor();
    const secret = (await dialog.locator(".copyable code").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(secret);

    await page.getByRole("button", { name: "Test: Night shift" }).click();
    await page.getByText("The test of Night shift was delivered.").waitFor();
    expect(received.map(({ type }) => type)).toContain("subscription.test");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Edit: Night shift" }).click();
    await dialog.getByLabel("Name").fill("Day shift");
    await dialog.getByRole("button", { name: "Save notification" }).click();
    await page.getByRole("button", { name: "Delete: Day shift" }).click();
    await dialog.getByRole("button", { name: "Delete notification" }).click();
    await page.getByText("No notifications yet").waitFor();
    visitor.pageErrors = visitor.pageErrors.filter((error) => !error.includes("422"));
  });
});
