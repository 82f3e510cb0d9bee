import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import npmChromium, { inflate } from "@sparticuz/chromium";
import type { AxeResults } from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { ROOT } from "../../src/programs/shared/system.ts";

const INSTALLED = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** Disables everything that would contact other servers. */
const DISABLED = ["gpu", "quic", "background-networking", "component-update", "sync"];
const ARGUMENTS = ["--no-sandbox", "--no-first-run", ...DISABLED.map((feature) => `--disable-${feature}`)];

export const launchBrowser = async (): Promise<Browser> =>
  await chromium.launch({ ...(await executable()), args: ARGUMENTS });

interface Executable {
  executablePath: string;
  env?: NodeJS.ProcessEnv;
}

/** Returns the browser of CHROMIUM_BIN, otherwise the one from npm (x64 only), otherwise an installed one. */
async function executable(): Promise<Executable> {
  if (process.env.CHROMIUM_BIN) return { executablePath: process.env.CHROMIUM_BIN };
  if (process.arch === "x64") return await fromNpm();
  const executablePath = INSTALLED.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("No Chromium found. Install one, or set CHROMIUM_BIN.");
  return { executablePath };
}

/** Adds the libraries (NSS, expat) and fonts of the package, which it uses by itself only on machines of Amazon. */
async function fromNpm(): Promise<Executable> {
  const libraries = await inflate(join(ROOT, "node_modules/@sparticuz/chromium/bin/al2023.tar.br"));
  const executablePath = await npmChromium.executablePath();
  const LD_LIBRARY_PATH = [process.env.LD_LIBRARY_PATH, join(libraries, "lib")].filter(Boolean).join(":");
  return { executablePath, env: { ...process.env, LD_LIBRARY_PATH, FONTCONFIG_PATH: join(tmpdir(), "fonts") } };
}

/** A window with the dashboard. */
export interface BrowserSession {
  page: Page;
  /** Errors on the console, exceptions, and requests to other servers than the service. */
  pageErrors: string[];
  close(): Promise<void>;
}

export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<BrowserSession> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const pageErrors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") pageErrors.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => pageErrors.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol.startsWith("http") && host !== new URL(url).host) pageErrors.push(`elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  return { page, pageErrors, close: async () => await context.close() };
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the serious and critical findings of axe, each with its elements. Applies all rules by default. */
export async function accessibilityViolations(page: Page, rules?: string[]): Promise<string[]> {
  // Evaluated through the debugger, since the page's content security policy would block it.
  await page.evaluate(axeSource);
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
}
