import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { barriers, launchBrowser, type Visitor, visit } from "../../scripts/trial/browser.ts";
import { Product, until } from "../../scripts/trial/product.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";

const ADMIN = { username: "root@example.com", password: `${SECRET_MARK} administrator's password` };
const PASSWORD = `${SECRET_MARK} a visitor's password`;

/** The page as people use it: in a real browser, on the whole product, with emulated access points. */
describe("the dashboard", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "controller-dashboard-"));
  let product: Product;
  let browser: Browser;
  let visitor: Visitor;
  let page: Page;

  beforeAll(async () => {
    [product, browser] = await Promise.all([
      Product.run("start", dataDir, { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password }),
      launchBrowser(),
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await product?.interrupt();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    visitor = await visit(browser, product.url);
    page = visitor.page;
  });
  afterEach(async () => {
    await visitor.close();
    expect(visitor.troubles).toEqual([]);
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

  /** In light and in dark. */
  async function expectNoBarriers(): Promise<void> {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await barriers(page), colorScheme).toEqual([]);
    }
  }

  it("says what is wrong with a sign-in, and lets the right one in", async () => {
    await expectNoBarriers();
    await signIn(ADMIN.username, `${SECRET_MARK} not the password`);
    await page.getByRole("alert").getByText("Incorrect username or password").waitFor();
    visitor.troubles.length = 0; // The browser notes the 401 by itself.
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
  });

  async function linkFor(username: string): Promise<string> {
    const folder = join(dataDir, "mail");
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
