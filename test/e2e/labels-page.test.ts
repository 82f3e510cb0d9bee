import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type BrowserSession, launchBrowser, visit } from "../../scripts/harness/browser.ts";
import { ApiClient } from "../../scripts/harness/client.ts";
import { ADMIN, sharedProduct } from "../support/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";
import { expectAccessible } from "./accessible.ts";

const PASSWORD = `${SECRET_MARK} a password of labels`;
/** Other tests on the same product have access points of their own. */
const GROUP = "labels-e2e";
const MINE = `test=${GROUP}`;

const SITES = {
  "lab-bristol-1": { site: "uk/bristol/library", floor: "1" },
  "lab-bristol-2": { site: "uk/bristol/library", floor: "2" },
  "lab-bristol-3": { site: "uk/bristol" },
  "lab-berlin-1": { site: "de/berlin" },
};

/** Labels, sites, grants and enrolment tokens in a real browser, on the whole product. */
describe("labels on the dashboard", () => {
  let product: Awaited<ReturnType<typeof sharedProduct>>;
  let client: ApiClient;
  let token: string;
  let browser: Browser;
  let visitor: BrowserSession;
  let page: Page;

  beforeAll(async () => {
    [product, browser] = await Promise.all([sharedProduct(), launchBrowser()]);
    client = new ApiClient(product.url);
    token = await client.logIn(ADMIN.username, ADMIN.password);
    for (const [ap_id, labels] of Object.entries(SITES)) {
      const configuration = { access_point_type: ap_id.includes("berlin") ? "WiFi" : "LiFi" };
      const body = { ap_id, password: PASSWORD, configuration, labels: { ...labels, test: GROUP } };
      await client.call("/api/v1/agents/", { token, body });
    }
  });
  afterAll(async () => {
    await browser?.close();
    for (const apId of [...Object.keys(SITES), "lab-enrolled"]) {
      await client.call(`/api/v1/agents/${apId}`, { method: "DELETE", token }).catch(() => {});
    }
  });
  beforeEach(async () => {
    visitor = await visit(browser, product.url);
    page = visitor.page;
  });
  afterEach(async () => {
    await visitor.close();
    expect(visitor.pageErrors.filter((error) => !/50[34]|401/.test(error))).toEqual([]);
  });

  async function signIn(username: string, password: string): Promise<void> {
    await page.getByLabel("E-mail").fill(username);
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Main" }).waitFor();
  }
  const signInAsAdministrator = () => signIn(ADMIN.username, ADMIN.password);
  const filter = () => page.getByRole("combobox", { name: "Filter by labels" });
  const rowOf = (apId: string) => page.getByRole("row").filter({ hasText: apId });

  it("filters by labels with completion, keeps the filter in the address, and shows where an error is", async () => {
    await signInAsAdministrator();
    await filter().click();
    await filter().pressSequentially("tes");
    const suggestions = page.getByRole("listbox", { name: "Suggestions" });
    await suggestions.getByRole("option", { name: /^test/ }).waitFor();
    await expectAccessible(page);
    await filter().press("ArrowDown");
    await filter().press("Enter");
    expect(await filter().inputValue()).toBe("test");
    await suggestions.getByRole("option", { name: /^test=/ }).click();
    await suggestions.getByRole("option", { name: GROUP }).click();
    expect(await filter().inputValue()).toBe(MINE);
    await filter().press("Enter");
    await rowOf("lab-berlin-1").waitFor();
    await page.waitForURL(/selector=test%3Dlabels-e2e/);
    await expect.poll(() => page.getByRole("table").getByRole("link").count()).toBe(4);
    await page.getByRole("button", { name: "4 all" }).waitFor();

    await page.reload();
    await rowOf("lab-berlin-1").waitFor();
    expect(await filter().inputValue()).toBe(MINE);
    await filter().fill(`${MINE},,`);
    await filter().press("Enter");
    await page.getByRole("alert").getByText("expected at position 16").waitFor();
    await expectAccessible(page);
  });

  it("shows the sites with their counters, and filters by one of them", async () => {
    await signInAsAdministrator();
    await page.goto(`${product.url}/#/?selector=${encodeURIComponent(MINE)}`);
    const sites = page.getByRole("region", { name: "Sites" });
    await sites.getByRole("button", { name: "Sites below uk" }).click();
    const bristol = sites.getByRole("button", { name: /^bristol/ });
    expect(await bristol.textContent()).toContain("3");
    await bristol.click();
    await page.waitForURL(/site/);
    expect(await filter().inputValue()).toBe(`${MINE},site in (uk/bristol,uk/bristol/*)`);
    await rowOf("lab-bristol-3").waitFor();
    await rowOf("lab-berlin-1").waitFor({ state: "detached" });
    // The tree still shows the other sites.
    await sites.getByRole("button", { name: /^de/ }).waitFor();
    await page.getByRole("heading", { name: "Charts" }).waitFor();
    await page.getByLabel("One line for each").selectOption("site");
    await page.getByRole("img", { name: /^Load: / }).waitFor();
    await expectAccessible(page);
    await sites.getByRole("button", { name: /^bristol/ }).click();
    await rowOf("lab-berlin-1").waitFor();
  });

  it("changes the labels of one access point, and shows those of the service", async () => {
    await signInAsAdministrator();
    await page.goto(`${product.url}/#/access-points/lab-berlin-1`);
    const labels = page.getByRole("list", { name: "Labels" });
    await labels.getByRole("link", { name: "site is de/berlin" }).waitFor();
    await labels.getByRole("link", { name: "technology is WiFi" }).waitFor();
    await page.getByRole("button", { name: "Edit labels" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Value of site").fill("de/berlin/roof");
    await dialog.getByRole("button", { name: "Add label" }).click();
    await dialog.getByLabel("Key of label 3").fill("owner");
    await dialog.getByLabel("Value of owner").fill("me");
    await dialog.getByText("Only the service sets this label").waitFor();
    await expectAccessible(page);
    await dialog.getByLabel("Key of owner").fill("room");
    await dialog.getByRole("button", { name: "Save labels" }).click();
    await labels.getByRole("link", { name: "site is de/berlin/roof" }).waitFor();
    await labels.getByRole("link", { name: "room is me" }).waitFor();
  });

  it("changes the labels of a selection after a preview, and exports and imports them", async () => {
    await signInAsAdministrator();
    await page.goto(`${product.url}/#/?selector=${encodeURIComponent(MINE)}`);
    await rowOf("lab-berlin-1").waitFor();
    await page.getByRole("button", { name: "Change labels…" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByLabel("Access points").inputValue()).toBe(MINE);
    await dialog.getByLabel("Key of label 1").fill("phase");
    await dialog.getByLabel("Value of phase").fill("two");
    await dialog.getByLabel("Remove labels").fill("floor");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText("4 access points selected. The labels of 4 will change.").waitFor();
    await expectAccessible(page);
    expect(await labelsOf("lab-bristol-1")).toMatchObject({ floor: "1" });
    await dialog.getByRole("button", { name: "Change 4 access points" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await labelsOf("lab-bristol-1")).toMatchObject({ phase: "two" });
    expect(await labelsOf("lab-bristol-1")).not.toHaveProperty("floor");

    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export labels" }).click(),
    ]);
    const csv = readFileSync(await download.path(), "utf8");
    expect(csv.split("\r\n").find((line) => line.startsWith("lab-bristol-1"))).toContain("two");

    await page.getByRole("button", { name: "Import labels…" }).click();
    const choose = (text: string) =>
      dialog
        .getByLabel("CSV file")
        .setInputFiles({ name: "labels.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
    await choose("ap_id,phase\nlab-bristol-1,three\nunknown,three\nlab-bristol-2,not valid\n");
    await dialog.getByRole("alert").getByText("2 lines cannot be imported").waitFor();
    await dialog.getByText(/^Line 3/).waitFor();
    await dialog.getByText(/^Line 4/).waitFor();
    await expectAccessible(page);
    await choose("ap_id,phase\nlab-bristol-1,three\nlab-bristol-2,\n");
    await dialog.getByRole("button", { name: "Change 2 access points" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await labelsOf("lab-bristol-1")).toMatchObject({ phase: "three" });
    expect(await labelsOf("lab-bristol-2")).not.toHaveProperty("phase");
    visitor.pageErrors = visitor.pageErrors.filter((error) => !error.includes("422"));
  });

  it("lets administrators create groups and grants, which limit what a user sees and may do", async () => {
    const username = "limited@example.com";
    await client.call("/api/v1/users/", { token, body: { username, password: PASSWORD, roles: ["user"] } });
    await signInAsAdministrator();
    await page.goto(`${product.url}/#/administration/groups`);
    await page.getByRole("button", { name: "Create group" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("bristol");
    await dialog.getByLabel("Access points (selector)").fill("site in (uk/bristol,uk/bristol/*)");
    await dialog.getByLabel("Description (optional)").fill("Everything in Bristol");
    await expectAccessible(page);
    await dialog.locator("button[type=submit]").click();
    await page.getByRole("link", { name: "@bristol" }).waitFor();

    await page.getByRole("link", { name: "Users" }).click();
    await page.getByRole("button", { name: `Change access: ${username}` }).click();
    await dialog.getByLabel("Operator of all access points").waitFor();
    expect(await dialog.getByLabel("Operator of all access points").isChecked()).toBe(true);
    await dialog.getByLabel("Only what these grants allow").check();
    await dialog.getByText("sees only the access points that it emulates").waitFor();
    await dialog.getByRole("button", { name: "Add grant" }).click();
    await dialog.getByLabel("Role", { exact: true }).selectOption("manager");
    await dialog.getByLabel("Access points (selector)").fill("@bristol");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Change access" }).click();
    await dialog.waitFor({ state: "detached" });

    await page.evaluate(() => sessionStorage.clear());
    await page.goto(product.url);
    await page.reload();
    await signIn(username, PASSWORD);
    await rowOf("lab-bristol-1").waitFor();
    expect(await rowOf("lab-berlin-1").count()).toBe(0);
    await page.goto(`${product.url}/#/access-points/lab-berlin-1`);
    await page.getByText("There is no access point called “lab-berlin-1”").waitFor();
    await page.goto(`${product.url}/#/access-points/lab-bristol-1`);
    await page.getByRole("button", { name: "Edit labels" }).waitFor();
    await page.getByRole("link", { name: "Administration" }).click();
    await page.getByRole("link", { name: "Enrolment" }).waitFor();
    expect(await page.getByRole("link", { name: "Users" }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Audit trail" }).count()).toBe(0);
    await expectAccessible(page);
    visitor.pageErrors = visitor.pageErrors.filter((error) => !error.includes("404"));
  });

  it("creates an enrolment token that is shown once, and revokes it", async () => {
    await signInAsAdministrator();
    await page.goto(`${product.url}/#/administration/enrolment`);
    await page.getByRole("button", { name: "Create token" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Description (optional)").fill("New library");
    await dialog.getByLabel("Key of label 1").fill("site");
    await dialog.getByLabel("Value of site").fill("uk/bristol/library");
    await dialog.getByLabel("Uses (optional)").fill("1");
    await expectAccessible(page);
    await dialog.locator("button[type=submit]").click();
    await dialog.getByText("It is not shown again").waitFor();
    const enrolmentToken = (await dialog.locator(".copyable code").textContent()) ?? "";
    await expectAccessible(page);
    const body = { ap_id: "lab-enrolled", password: PASSWORD, configuration: {} };
    await client.call("/api/v1/agents/public", { token: enrolmentToken, body });
    expect(await labelsOf("lab-enrolled")).toMatchObject({ site: "uk/bristol/library" });
    await dialog.getByRole("button", { name: "Done" }).click();
    expect(await page.content()).not.toContain(enrolmentToken);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("1 of 1 uses").waitFor();
    await page.getByRole("button", { name: "Revoke: New library" }).click();
    await dialog.getByRole("button", { name: "Revoke token" }).click();
    await page.getByText("Revoked on").waitFor();
    await expectAccessible(page);
  });

  it("tells a visitor without grants what is shown", async () => {
    const username = "no-grants@example.com";
    await client.call("/api/v1/users/", { token, body: { username, password: PASSWORD, roles: ["user"] } });
    await client.call(`/api/v1/users/${username}/grants`, { method: "PUT", token, body: { grants: [] } });
    await signIn(username, PASSWORD);
    await page.getByText("You see only the access points that you emulate").waitFor();
    await page.getByRole("link", { name: "Start emulated access points" }).waitFor();
    expect(await page.getByRole("link", { name: "Administration" }).count()).toBe(0);
    await expectAccessible(page);
  });

  async function labelsOf(apId: string): Promise<Record<string, string>> {
    const { labels } = await client.call<{ labels: Record<string, string> }>(`/api/v1/agents/${apId}/labels`, {
      token,
    });
    return labels;
  }
});
