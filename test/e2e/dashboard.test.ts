import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrowserSession, launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { until } from "../../scripts/harness/product.ts";
import { expectAccessible } from "../support/accessible.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";

const PASSWORD = `${SECRET_MARK} a visitor's password`;

/** The page as people use it: in a real browser, on the whole product, with emulated access points. */
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
    // On a busy machine a store may be too slow for a request. The page shows that, and repeats the request.
    expect(visitor.pageErrors.filter((trouble) => !trouble.includes("503"))).toEqual([]);
  });

  let visitors = 0;
  const uniqueName = () => `visitor-${++visitors}@example.com`;

  async function signUp(): Promise<string> {
    const username = uniqueName();
    await page.getByRole("link", { name: "Make an account" }).click();
    await page.getByLabel("E-mail").fill(username);
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Make the account" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    return username;
  }

  async function signIn(username: string, password: string): Promise<void> {
    await page.getByLabel("E-mail").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  const expectNoBarriers = (): Promise<void> => expectAccessible(page);

  it("says what is wrong with a sign-in, and lets the right one in", async () => {
    await expectNoBarriers();
    await signIn(ADMIN.username, `${SECRET_MARK} not the password`);
    await page.getByRole("alert").getByText("Incorrect username or password").waitFor();
    visitor.pageErrors.length = 0; // The browser notes the 401 by itself.
    await signIn(ADMIN.username, ADMIN.password);
    await page.getByRole("link", { name: "Administration" }).waitFor();
    await page.reload();
    // The tab remembers; another one does not.
    await page.getByRole("link", { name: "Administration" }).waitFor();
  });

  it("recovers a forgotten password through the message", async () => {
    const username = await signUp();
    await page.evaluate(() => sessionStorage.clear());
    await page.reload();
    await page.getByRole("link", { name: "Forgotten password" }).click();
    await page.getByLabel("E-mail").fill(username);
    await page.getByRole("button", { name: "Send the link" }).click();
    await page.getByRole("status").getByText("15 minutes").waitFor();
    await expectNoBarriers();
    const link = await linkFor(username);
    await page.goto(link);
    await page.getByLabel("New password").fill(`${PASSWORD} anew`);
    await page.getByLabel("The same again").fill(`${PASSWORD} anew`);
    await expectNoBarriers();
    await page.getByRole("button", { name: "Set the password" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(username, `${PASSWORD} anew`);
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    // Followed by somebody who has signed in, it is the same link; what it holds does not stay in the address.
    await page.goto(link);
    await page.getByRole("heading", { name: "Set a new password" }).waitFor();
    await page.waitForURL(`${product.url}/#/reset-password`);
  });

  it("starts emulated access points, and does with one of them all that can be done", async () => {
    await signUp();
    await page.getByRole("link", { name: "Emulator" }).click();

    // As the form is: five LiFi access points in Bristol.
    await page.getByRole("heading", { name: "Emulator" }).waitFor();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("heading", { name: "5 access points made" }).waitFor();
    await page.getByText("5 of 5 access points online").waitFor({ timeout: 60_000 });
    await expectNoBarriers();

    const link = page.getByRole("link", { name: /^emu-lifi-/ }).first();
    const apId = (await link.textContent()) ?? "";
    await link.click();
    await page.getByRole("heading", { name: apId }).waitFor();
    const chart = page.getByRole("img", { name: /^Load: latest/ });
    await chart.waitFor();
    const earlier = await chart.getAttribute("aria-label");
    await until(async () => (await chart.getAttribute("aria-label")) !== earlier);
    await page.getByText("online", { exact: true }).waitFor();
    await expectNoBarriers();

    // The same in a browser whose clock is wrong, from here on.
    await page.addInitScript("const right = Date.now; Date.now = () => right() + 600_000;");
    await page.reload();
    await chart.waitFor();
    await page
      .locator(".vitals")
      .getByText(/^(now|\d+ seconds? ago)$/)
      .waitFor();

    await page.getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
    await page.getByRole("list").getByText("done", { exact: true }).waitFor({ timeout: 30_000 });
    await page.getByRole("img", { name: /^Load: latest 0 / }).waitFor();

    const [csv] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download CSV" }).click(),
    ]);
    expect(csv.suggestedFilename()).toBe(`${apId}-5m.csv`);
    expect(readFileSync(await csv.path(), "utf8")).toMatch(/^time,metric,value\r?\n\d{4}-.+,load,[\d.]+\r?\n/);

    await page.getByRole("link", { name: "request its history" }).click();
    await page.getByRole("button", { name: "Last 5 minutes" }).click();
    await page.getByRole("button", { name: "Request", exact: true }).click();
    await page.getByText("All received").waitFor({ timeout: 30_000 });
    await expectNoBarriers();
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
    expect(await page.getByText("Rows here").locator("xpath=..").textContent()).toContain(
      rows.length.toLocaleString("en"),
    );

    // On the map, and found by its name.
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("application").locator("canvas").waitFor();
    await page.getByPlaceholder("Search by name").fill(apId);
    await page.getByRole("row").filter({ hasText: apId }).waitFor();
    expect(await page.getByRole("table").getByRole("link").count()).toBe(1);
    await expectNoBarriers();

    await page.getByRole("link", { name: "Emulator" }).click();
    await page.getByRole("button", { name: /Stop and remove/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: /Stop/ }).click();
    await page.getByText("Nothing runs").waitFor();
  });

  it("lets an administrator make users, access points and apps, and see who did", async () => {
    await signIn(ADMIN.username, ADMIN.password);
    await page.getByRole("link", { name: "Administration" }).click();
    const username = uniqueName();
    await page.getByRole("button", { name: "New user" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("E-mail").fill(username);
    await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await expectNoBarriers();
    await dialog.locator("button[type=submit]").click();
    await page.getByText(username).first().waitFor();
    await expectNoBarriers();

    await page.getByRole("link", { name: "Apps" }).click();
    await page.getByRole("button", { name: "New app" }).click();
    await dialog.getByLabel("Name").fill("charts");
    await dialog.locator("button[type=submit]").click();
    const key = (await dialog.locator("code").first().textContent()) ?? "";
    const answer = await fetch(`${product.url}/api/v1/token/?login_type=third_party_app`, {
      method: "POST",
      body: new URLSearchParams({ username: "charts", password: key }),
    });
    expect(answer.status).toBe(200);
    await expectNoBarriers();
    await dialog
      .getByRole("button", { name: /Close|Done/ })
      .first()
      .click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(key);

    await page.getByRole("link", { name: "Access points" }).click();
    await page.getByRole("heading", { name: "Administration" }).waitFor();
    await expectNoBarriers();
    await page.getByRole("link", { name: "Audit trail" }).click();
    await page.getByText(username).first().waitFor();
    await expectNoBarriers();
    await page.goto(`${product.url}/#/account`);
    await page.getByRole("heading", { name: "Your account", exact: true }).waitFor();
    await expectNoBarriers();
  });

  it("takes whatever an access point or an address says for text, and for the name of nothing", async () => {
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
      await page.getByText("has not reported anything").waitFor();
      await page.getByText(markup).first().waitFor();
    }
    await page.goto(`${product.url}/#/constructor`);
    await page.getByText("There is no such page").waitFor();
    for (const apId of ["constructor", "__proto__", "markup"])
      await asAdministrator("DELETE", `/api/v1/agents/${apId}`);
  });

  it("is no way into what is for administrators", async () => {
    await signUp();
    await page.goto(`${product.url}/#/administration/users`);
    await page.getByText("There is no such page").waitFor();
    expect(await page.getByRole("link", { name: "Administration" }).count()).toBe(0);
  });

  it("asks for the password again when a sign-in has ended, and loses nothing of the page", async () => {
    const username = await signUp();
    await page.getByRole("link", { name: "Emulator" }).click();
    await page.getByLabel("Access points", { exact: true }).fill("17");
    await setPassword(username, `${PASSWORD} anew`);
    const dialog = page.getByRole("dialog", { name: "Sign in again" });
    await dialog.waitFor();
    await expectNoBarriers();
    await dialog.getByLabel("Password").fill(`${PASSWORD} anew`);
    await dialog.getByRole("button", { name: "Stay signed in" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await page.getByLabel("Access points", { exact: true }).inputValue()).toBe("17");
    await page.getByText("Nothing runs").waitFor();
    visitor.pageErrors = visitor.pageErrors.filter((trouble) => !trouble.includes("401"));
  });

  it("says so when the network is gone, and goes on when it is back", async () => {
    await signUp();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.context().setOffline(true);
    const notice = page.getByRole("alert").filter({ hasText: "No connection to the service" });
    await notice.waitFor();
    // A page that was never visited cannot be had now.
    await page.getByRole("link", { name: "Jobs" }).click();
    await page.getByText("could not be loaded").waitFor();
    await page.context().setOffline(false);
    await notice.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();
    visitor.pageErrors = visitor.pageErrors.filter(
      (trouble) => !/ERR_INTERNET_DISCONNECTED|dynamically imported module|Unable to preload/.test(trouble),
    );
  });

  /** All of the user's tokens end. */
  const setPassword = async (username: string, password: string): Promise<void> =>
    await asAdministrator("PUT", `/api/v1/users/${username}`, { password });

  async function asAdministrator(method: string, path: string, body?: object): Promise<void> {
    const login = await fetch(`${product.url}/api/v1/token/?login_type=user`, {
      method: "POST",
      body: new URLSearchParams(ADMIN),
    });
    const { access_token } = (await login.json()) as { access_token: string };
    const answer = await fetch(`${product.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${access_token}`, "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
  }

  async function linkFor(username: string): Promise<string> {
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
