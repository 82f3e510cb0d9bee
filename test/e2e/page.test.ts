import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Browser, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../scripts/stack/project.ts";
import { launchBrowser } from "../../scripts/trial/browser.ts";

const BUILD = join(ROOT, "dist/dashboard");
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const AP_ID = "roof-1";

/** Keeps the texts of all alerts, also of those that vanish. */
const NOTE_ALERTS = `
  globalThis.alerts = [];
  new MutationObserver(() => {
    for (const { textContent } of document.querySelectorAll("[role=alert]")) if (textContent !== "") alerts.push(textContent);
  }).observe(document, { subtree: true, childList: true, characterData: true });
`;

/** Serves the built page without a service behind it; the test answers the page's calls. */
function servePage(): Server {
  return createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://page");
    const file = join(BUILD, pathname === "/" ? "index.html" : pathname);
    if (!file.startsWith(BUILD) || !existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    return createReadStream(file).pipe(response);
  });
}

/** What the service answers about one access point with one metric. */
async function answer(route: Route): Promise<void> {
  const { pathname } = new URL(route.request().url());
  const window = { agent_id: AP_ID, window_minutes: 5 };
  const ts = new Date().toISOString();
  const bodies: Record<string, object> = {
    "/api/v1/agents/roof-1": { id: crypto.randomUUID(), ap_id: AP_ID, configuration: {} },
    "/api/v1/metrics/agent_metrics": { ...window, metrics: [{ name: "load", label: "Load" }] },
    "/api/v1/metrics/agent_multi_metric_data": { ...window, series: [{ metric: "load", points: [{ ts, value: 42 }] }] },
  };
  await route.fulfill({ json: bodies[pathname] ?? {}, headers: { "X-Request-Id": "test" } });
}

describe("the built page", () => {
  const server = servePage();
  let browser: Browser;
  let url: string;

  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    browser = await launchBrowser();
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await browser?.close();
    server.close();
  });

  /** Opens the access point's page as a user who has signed in. */
  async function open(prepare: (page: Page) => Promise<unknown>): Promise<{ page: Page; consoleErrors: string[] }> {
    const page = await (await browser.newContext()).newPage();
    const consoleErrors: string[] = [];
    page.on("console", (message) => message.type() === "error" && consoleErrors.push(message.text()));
    page.on("pageerror", (error) => consoleErrors.push(error.message));
    const expiresAtMs = Date.now() + 3_600_000;
    const session = { username: "me@example.com", token: "t", expiresAtMs, renewAtMs: expiresAtMs };
    await page.addInitScript(`sessionStorage.setItem("session", ${JSON.stringify(JSON.stringify(session))})`);
    await page.route("**/api/v1/**", answer);
    await prepare(page);
    await page.goto(`${url}/#/access-points/${AP_ID}`);
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

  it("repeats a read that a proxy has failed, and shows no error", async () => {
    let failures = 2;
    const { page } = await open(async (page) => {
      await page.addInitScript(NOTE_ALERTS);
      await page.route("**/api/v1/agents/*", async (route) =>
        failures-- > 0 ? await route.fulfill({ status: 500, body: "proxy" }) : await answer(route),
      );
    });
    await page.getByRole("heading", { name: AP_ID }).waitFor();
    expect(failures).toBeLessThan(0);
    expect(await page.evaluate("alerts")).toEqual([]);
    await page.context().close();
  });

  it("sends a sign-up once, whatever the response", async () => {
    let requests = 0;
    const page = await (await browser.newContext()).newPage();
    await page.route("**/dashboard.json", (route) =>
      route.fulfill({ json: { map: { tiles: null, attribution: null }, sign_up: true } }),
    );
    await page.route("**/api/v1/users/signup", async (route) => {
      requests++;
      await route.fulfill({ status: 500, body: "proxy" });
    });
    await page.goto(url);
    await page.getByRole("link", { name: "Make an account" }).click();
    await page.getByLabel("E-mail").fill("me@example.com");
    await page.getByLabel("Password").fill("a good password");
    await page.getByRole("button", { name: "Make the account" }).click();
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

  it("reports an error in a module as its own, and logs the original error", async () => {
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
