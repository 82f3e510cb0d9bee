import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import npmChromium, { inflate } from "@sparticuz/chromium";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { ROOT } from "../../src/programs/shared/system.ts";

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
  return await chromium.launch({ ...(await executable()), args: ARGUMENTS });
}

interface Executable {
  executablePath: string;
  env?: NodeJS.ProcessEnv;
}

/** The one that is named, else the one from npm, which there is for x64 alone, else one of the system's. */
async function executable(): Promise<Executable> {
  const { CHROMIUM_BIN } = process.env;
  if (CHROMIUM_BIN !== undefined && CHROMIUM_BIN !== "") return { executablePath: CHROMIUM_BIN };
  if (process.arch === "x64") return await fromNpm();
  const executablePath = INSTALLED.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("There is no Chromium: install one, or name it with CHROMIUM_BIN.");
  return { executablePath };
}

/** With the libraries (NSS, expat) and fonts it brings for machines that have none; by itself it uses them on Amazon's alone. */
async function fromNpm(): Promise<Executable> {
  const libraries = await inflate(join(ROOT, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
  const executablePath = await npmChromium.executablePath();
  const { LD_LIBRARY_PATH = "" } = process.env;
  const env = {
    ...process.env,
    LD_LIBRARY_PATH: `${LD_LIBRARY_PATH === "" ? "" : `${LD_LIBRARY_PATH}:`}${join(libraries, "lib")}`,
    FONTCONFIG_PATH: join(tmpdir(), "fonts"),
  };
  return { executablePath, env };
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

/** Serious and critical findings of axe, each with its place on the page. By default of all rules. */
export async function barriers(page: Page, rules?: string[]): Promise<string[]> {
  // As the debugger's own: the page's policy would not let it in.
  await page.evaluate(axeSource);
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
}
