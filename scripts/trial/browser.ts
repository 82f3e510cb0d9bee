import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import npmChromium from "@sparticuz/chromium";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** The dashboard in a real browser, and what is watched over while somebody uses it. */

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** A browser that is not driven by a person has no reason to call home. */
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({ executablePath: await executable(), args: ARGUMENTS });
}

/** The one that is named, else the one from npm, which there is for x64 alone, else one of the system's. */
async function executable(): Promise<string> {
  const { CHROMIUM_BIN } = process.env;
  if (CHROMIUM_BIN !== undefined && CHROMIUM_BIN !== "") return CHROMIUM_BIN;
  if (process.arch === "x64") return await npmChromium.executablePath();
  const found = INSTALLED.find((path) => existsSync(path));
  if (found === undefined) throw new Error("There is no Chromium: install one, or name it with CHROMIUM_BIN.");
  return found;
}

/** A person at a window of their own, and what went wrong there. */
export interface Visitor {
  page: Page;
  /** Errors on the console, exceptions, and requests that went to anybody but the service. */
  troubles: string[];
  close(): Promise<void>;
}

export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => troubles.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol.startsWith("http") && host !== new URL(url).host) troubles.push(`elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  return { page, troubles, close: async () => await context.close() };
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What keeps people from using the page, as axe finds it: serious and critical findings, each with where it is. */
export async function barriers(page: Page): Promise<string[]> {
  // As the debugger's own: the page's policy would not let it in.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>("axe.run(document, { resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
}
