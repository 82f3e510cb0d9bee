import { randomUUID } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser } from "../../scripts/harness/browser.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { ServiceClient } from "../support/service-client.ts";

/** Records the texts of all alerts, also of those that disappear. */
const RECORD_ALERTS = `
  globalThis.alerts = [];
  new MutationObserver(() => {
    for (const { textContent } of document.querySelectorAll("[role=alert]")) if (textContent !== "") alerts.push(textContent);
  }).observe(document, { subtree: true, childList: true, characterData: true });
`;

/** Problems with the browser, with the page's files and with the connection to the service. */
describe("the dashboard, if something is wrong,", () => {
  const apId = `page-${randomUUID()}`;
  const account = { username: apId, password: `${SECRET_MARK} of a page` };
  let url: string;
  let token: string;
  let browser: Browser;

  beforeAll(async () => {
    ({ url } = await sharedProduct());
    browser = await launchBrowser();
    const service = new ServiceClient(url);
    token = await service.tokenOf(ADMIN);
    const agent = { ap_id: apId, password: account.password, configuration: {} };
    await service.post("/api/v1/agents/", token, agent);
    const own = await service.tokenOf(account, "agent");
    await service.post("/api/v1/agent_update/update", own, { load: 42 });
  });
  afterAll(async () => {
    await browser?.close();
  });

  /** Opens the page of the access point as a user who is signed in. */
  async function open(prepare: (page: Page) => Promise<unknown>): Promise<{ page: Page; consoleErrors: string[] }> {
    const page = await (await browser.newContext()).newPage();
    const consoleErrors: string[] = [];
    page.on("console", (message) => message.type() === "error" && consoleErrors.push(message.text()));
    page.on("pageerror", (error) => consoleErrors.push(error.message));
    const expiresAtMs = Date.now() + 3_600_000;
    const account = { username: ADMIN.username, isAdministrator: true, scopes: [] };
    const session = { ...account, token, expiresAtMs, renewAtMs: expiresAtMs };
    await page.addInitScript(`sessionStorage.setItem("session", ${JSON.stringify(JSON.stringify(session))})`);
    await prepare(page);
    await page.goto(`${url}/#/access-points/${apId}`);
    return { page, consoleErrors };
  }

  it.each([["en-US@posix"], [""], [undefined]])(
    "draws an access point's charts if the browser's language is %j",
    async (language) => {
      const { page, consoleErrors } = await open(async (page) => {
        const value = language === undefined ? "undefined" : JSON.stringify(language);
        await page.addInitScript(
          `Object.defineProperty(Navigator.prototype, "language", { get: () => ${value}, configurable: true })`,
        );
      });
      await page.getByRole("img", { name: /^Load: latest 42/ }).waitFor();
      await page.locator(".chart canvas").waitFor();
      expect(consoleErrors).toEqual([]);
      await page.context().close();
    },
  );

  it("repeats a read request that a proxy failed, and shows no error", async () => {
    let failures = 2;
    const { page } = await open(async (page) => {
      await page.addInitScript(RECORD_ALERTS);
      await page.route("**/api/v1/agents/*", async (route) =>
        failures-- > 0 ? await route.fulfill({ status: 500, body: "proxy" }) : await route.continue(),
      );
    });
    await page.getByRole("heading", { name: apId }).waitFor();
    expect(failures).toBeLessThan(0);
    expect(await page.evaluate("alerts")).toEqual([]);
    await page.context().close();
  });

  it("sends a sign-up only once, even if the response is an error", async () => {
    let requests = 0;
    const page = await (await browser.newContext()).newPage();
    await page.route("**/api/v1/users/signup", async (route) => {
      requests++;
      await route.fulfill({ status: 500, body: "proxy" });
    });
    await page.goto(url);
    await page.getByRole("link", { name: "Create an account" }).click();
    await page.getByLabel("E-mail").fill("me@example.com");
    await page.getByLabel("Password").fill("a good password");
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByRole("alert").getByText("cannot be reached").waitFor();
    expect(requests).toBe(1);
    await page.context().close();
  });

  it("offers a reload if a file is missing, and logs the original error", async () => {
    let isMissing = true;
    const { page, consoleErrors } = await open(
      async (page) =>
        await page.route("**/assets/access-point-*.js", (route) =>
          isMissing ? route.fulfill({ status: 404, body: "" }) : route.continue(),
        ),
    );
    await page.getByRole("alert").getByText("could not be loaded").waitFor();
    expect(consoleErrors.join("\n")).toContain("Failed to fetch dynamically imported module");
    isMissing = false;
    await page.getByRole("button", { name: "Reload the page" }).click();
    await page.getByRole("img", { name: /^Load: latest 42/ }).waitFor();
    await page.context().close();
  });

  it("reports an error in a module as a bug of the dashboard, and logs the original error", async () => {
    const { page, consoleErrors } = await open(
      async (page) =>
        await page.route("**/assets/access-point-*.js", (route) =>
          route.fulfill({ contentType: "text/javascript", body: 'throw new RangeError("a bug in the module");' }),
        ),
    );
    await page.getByRole("alert").getByText("error in the dashboard").waitFor();
    expect(consoleErrors.join("\n")).toContain("a bug in the module");
    expect(await page.getByText("could not be loaded").count()).toBe(0);
    await page.context().close();
  });
});
