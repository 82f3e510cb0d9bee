import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrowserSession, launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { until } from "../../scripts/harness/product.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { expectAccessible } from "./accessible.ts";

const PASSWORD = `${SECRET_MARK} a visitor's password`;
const NEW_PASSWORD = `${PASSWORD}, changed`;

/** Runs in a real browser, on the whole product, with emulated access points. */
describe("the dashboard", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let browser: Browser;
  let visitor: BrowserSession;
  let page: Page;

  beforeAll(async () => {
    [product, browser] = await Promise.all([sharedProduct(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
  });
  beforeEach(async () => {
    visitor = await visit(browser, product.url);
    page = visitor.page;
  });
  afterEach(async () => {
    await visitor.close();
    // On a busy machine a store may time out. The page shows an error and repeats the request.
    expect(visitor.pageErrors.filter((error) => !error.includes("503"))).toEqual([]);
  });

  let visitors = 0;
  const uniqueName = () => `visitor-${++visitors}@example.com`;

  async function signUp(): Promise<string> {
    const username = uniqueName();
    await page.getByRole("link", { name: "Create an account" }).click();
    await page.getByLabel("E-mail").fill(username);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create account" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    return username;
  }

  async function signIn(username: string, password: string): Promise<void> {
    await page.getByLabel("E-mail").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  it("shows an error for a wrong password, and signs in with the right one", async () => {
    await expectAccessible(page);
    await signIn(ADMIN.username, `${SECRET_MARK} not the password`);
    await page.getByRole("alert").getByText("Incorrect username or password").waitFor();
    visitor.pageErrors.length = 0; // The browser logs the 401 as an error.
    await signIn(ADMIN.username, ADMIN.password);
    await page.getByRole("link", { name: "Administration" }).waitFor();
    await page.reload();
    // The session survives a reload of the tab.
    await page.getByRole("link", { name: "Administration" }).waitFor();
  });

  it("sets a new password with the link in an e-mail", async () => {
    const username = await signUp();
    await page.evaluate(() => sessionStorage.clear());
    await page.reload();
    await page.getByRole("link", { name: "Forgot your password?" }).click();
    await page.getByLabel("E-mail").fill(username);
    await page.getByRole("button", { name: "Send link" }).click();
    await page.getByRole("status").getByText("15 minutes").waitFor();
    await expectAccessible(page);
    const link = await resetLinkFor(username);
    await page.goto(link);
    await page.getByLabel("New password").fill(NEW_PASSWORD);
    await page.getByLabel("Repeat the password").fill(NEW_PASSWORD);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Set password" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(username, NEW_PASSWORD);
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    // The link also opens for a user who is signed in, and its token leaves the address.
    await page.goto(link);
    await page.getByRole("heading", { name: "Set a new password" }).waitFor();
    await page.waitForURL(`${product.url}/#/reset-password`);
  });

  it("starts emulated access points, and shows the charts, commands, history and position of one", async () => {
    await signUp();
    await page.getByRole("link", { name: "Emulator" }).click();

    // The form's defaults: five LiFi access points in Bristol.
    await page.getByRole("heading", { name: "Emulator" }).waitFor();
    await page.getByRole("button", { name: "Start emulation" }).click();
    await page.getByRole("heading", { name: "5 access points created" }).waitFor();
    await page.getByText("5 of 5 access points online").waitFor({ timeout: 60_000 });
    await expectAccessible(page);

    const link = page.getByRole("link", { name: /^emu-lifi-/ }).first();
    const apId = (await link.textContent()) ?? "";
    await link.click();
    await page.getByRole("heading", { name: apId }).waitFor();
    // Not the load, which may be 0 for minutes at night.
    const chart = page.getByRole("img", { name: /^Signal to noise: latest/ });
    await chart.waitFor();
    const earlier = await chart.getAttribute("aria-label");
    await until(async () => (await chart.getAttribute("aria-label")) !== earlier);
    await page.getByText("online", { exact: true }).waitFor();
    await expectAccessible(page);

    // From here on, the clock of the browser is wrong.
    await page.addInitScript("const right = Date.now; Date.now = () => right() + 600_000;");
    await page.reload();
    await chart.waitFor();
    await page
      .locator(".vitals")
      .getByText(/^(now|\d+ seconds? ago)$/)
      .first()
      .waitFor();

    await page.getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("list").getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
    await page.getByRole("img", { name: /^Load: latest 0 / }).waitFor();

    await page.getByRole("list", { name: "Sources of its samples" }).getByText("Emulator").waitFor();

    await page.getByRole("link", { name: "Request its history" }).click();
    await page.getByRole("button", { name: "Last 5 minutes" }).click();
    await page.getByRole("button", { name: "Request history" }).click();
    await page.getByText("All received").waitFor({ timeout: 30_000 });
    await expectAccessible(page);
    const [history] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /NDJSON/ }).click(),
    ]);
    const rows = readFileSync(await history.path(), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.length).toBeGreaterThan(50);
    for (const row of rows) expect(Object.keys(row)).toEqual(["time", "field", "value"]);
    expect(await page.getByText("Rows received").locator("xpath=..").textContent()).toContain(
      rows.length.toLocaleString("en"),
    );

    // The overview shows it on the map and finds it by name.
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("application").locator("canvas").waitFor();
    await page.getByPlaceholder("Search by name").fill(apId);
    await page.getByRole("row").filter({ hasText: apId }).waitFor();
    expect(await page.getByRole("table").getByRole("link").count()).toBe(1);
    await expectAccessible(page);

    await page.getByRole("link", { name: "Emulator" }).click();
    await page.getByRole("button", { name: /Stop and remove/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /Stop/ }).click();
    await page.getByText("No emulations running").waitFor();
  });

  it("lets an administrator create users and apps, and see it in the audit trail", async () => {
    await signIn(ADMIN.username, ADMIN.password);
    await page.getByRole("link", { name: "Administration" }).click();
    const username = uniqueName();
    await page.getByRole("button", { name: "Create user" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("E-mail").fill(username);
    await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await expectAccessible(page);
    await dialog.locator("button[type=submit]").click();
    await page.getByText(username).first().waitFor();
    await expectAccessible(page);

    await page.getByRole("link", { name: "Apps" }).click();
    await page.getByRole("button", { name: "Create app" }).click();
    await dialog.getByLabel("Name").fill("charts");
    await dialog.locator("button[type=submit]").click();
    const key = (await dialog.locator("code").first().textContent()) ?? "";
    const login = await fetch(`${product.url}/api/v1/token/?login_type=third_party_app`, {
      method: "POST",
      body: new URLSearchParams({ username: "charts", password: key }),
    });
    expect(login.status).toBe(200);
    await expectAccessible(page);
    await dialog
      .getByRole("button", { name: /Close|Done/ })
      .first()
      .click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(key);

    await page.getByRole("link", { name: "Access points" }).click();
    await page.getByRole("heading", { name: "Administration" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Audit trail" }).click();
    await page.getByText(username).first().waitFor();
    await expectAccessible(page);
    await page.goto(`${product.url}/#/account`);
    await page.getByRole("heading", { name: "Your account", exact: true }).waitFor();
    await expectAccessible(page);
  });

  it("shows names and values of access points as text, also markup and names of built-in properties", async () => {
    const markup = '<img src="/x" onerror="alert(1)">';
    for (const [ap_id, access_point_type] of [
      ["constructor", "constructor"],
      ["__proto__", "__proto__"],
      ["markup", markup],
    ])
      await asAdministrator("POST", "/api/v1/agents/", {
        ...{ ap_id, password: PASSWORD, configuration: { access_point_type, [markup]: markup } },
      });
    await signUp();
    await page.getByRole("row").filter({ hasText: markup }).waitFor();
    for (const apId of ["constructor", "__proto__", "markup"]) {
      await page.goto(`${product.url}/#/access-points/${apId}`);
      await page.getByRole("heading", { name: apId, exact: true }).waitFor();
      await page.getByText("No reports in the last 5 min").waitFor();
      await page.getByText(markup).first().waitFor();
    }
    await page.goto(`${product.url}/#/constructor`);
    await page.getByText("There is no such page").waitFor();
    for (const apId of ["constructor", "__proto__", "markup"])
      await asAdministrator("DELETE", `/api/v1/agents/${apId}`);
  });

  it("hides the administration from other users", async () => {
    await signUp();
    await page.goto(`${product.url}/#/administration/users`);
    await page.getByText("There is no such page").waitFor();
    expect(await page.getByRole("link", { name: "Administration" }).count()).toBe(0);
  });

  it("asks for the password when a session has ended, and keeps the input on the page", async () => {
    const username = await signUp();
    await page.getByRole("link", { name: "Emulator" }).click();
    await page.getByLabel("Access points", { exact: true }).fill("17");
    await setPassword(username, NEW_PASSWORD);
    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.waitFor();
    await expectAccessible(page);
    await dialog.getByLabel("Password").fill(NEW_PASSWORD);
    await dialog.getByRole("button", { name: "Stay signed in" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.getByLabel("Access points", { exact: true }).inputValue()).toBe("17");
    await page.getByText("No emulations running").waitFor();
    visitor.pageErrors = visitor.pageErrors.filter((error) => !error.includes("401"));
  });

  it("shows a notice while the network is down, and continues when it is back", async () => {
    await signUp();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.context().setOffline(true);
    const notice = page.getByRole("alert").filter({ hasText: "No connection to the service" });
    await notice.waitFor();
    // The browser has not loaded the code of this page yet.
    await page.getByRole("link", { name: "Jobs" }).click();
    await page.getByText("could not be loaded").waitFor();
    await page.context().setOffline(false);
    await notice.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();
    visitor.pageErrors = visitor.pageErrors.filter(
      (error) => !/ERR_INTERNET_DISCONNECTED|dynamically imported module|Unable to preload/.test(error),
    );
  });

  /** Revokes all tokens of the user. */
  const setPassword = async (username: string, password: string): Promise<void> =>
    await asAdministrator("PUT", `/api/v1/users/${username}`, { password });

  async function asAdministrator(method: string, path: string, body?: object): Promise<void> {
    const login = await fetch(`${product.url}/api/v1/token/?login_type=user`, {
      method: "POST",
      body: new URLSearchParams(ADMIN),
    });
    const { access_token } = (await login.json()) as { access_token: string };
    const response = await fetch(`${product.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${access_token}`, "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect(response.status).toBe(200);
  }

  async function resetLinkFor(username: string): Promise<string> {
    const folder = join(product.dataDir, "mail");
    let link: string | undefined;
    await until(() => {
      const messages = readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8"));
      const message = messages.find((text) => text.includes(username));
      link = message && /http\S+\/#\/reset-password\/[\w-]{43}/.exec(message)?.[0];
      return link !== undefined;
    });
    return link ?? "";
  }
});
