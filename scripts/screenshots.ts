import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import { runCommand, say } from "./stack/console.ts";
import { ROOT } from "./stack/project.ts";
import { launchBrowser, visit } from "./trial/browser.ts";
import { Product } from "./trial/product.ts";

const HELP = `npm run screenshots

Takes the README's pictures of the dashboard: runs the product in a temporary folder, spins up access points, lets them report for
a while, and visits the page in Chromium. Writes docs/overview.png and docs/access-point.png.`;

const ADMIN = { username: "operator@example.com", password: "a password for pictures" };
/** As much as a chart of five minutes can show. */
const HISTORY_MS = 5 * 60_000;

const PLACES = {
  "5G": ["London", "Bristol", "Manchester", "Paris", "Berlin", "Madrid", "Rome", "Vienna", "Athens", "Warsaw"],
  WiFi: ["London", "Edinburgh", "Dublin", "Amsterdam", "Brussels", "Munich", "Lisbon", "Prague", "Zurich"],
  LiFi: ["Bristol", "Eindhoven", "Oxford", "Barcelona", "Milan", "Oslo"],
};

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
  if (values.help) return say(HELP);
  const folder = mkdtempSync(join(tmpdir(), "controller-pictures-"));
  let product: Product | undefined;
  let browser: Browser | undefined;
  const stop = async (): Promise<void> => {
    await Promise.all([browser?.close(), product?.interrupt()]);
    rmSync(folder, { recursive: true, force: true });
  };
  // The product has a process group of its own: Ctrl-C does not reach it.
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void stop().then(() => process.exit(130)));
  try {
    say("Starting the product.");
    product = await Product.run("start", folder, {
      ADMIN_USERNAME: ADMIN.username,
      ADMIN_PASSWORD: ADMIN.password,
      LOG_REQUESTS: "failures",
    });
    const { url } = product;
    const call = caller(url, await logIn(url));
    const { ap_ids } = await call<{ ap_ids: string[] }>("/api/v1/emulator/spinup", {
      emulators: Object.entries(PLACES).map(([access_point_type, locations]) => ({
        ...{ access_point_type, locations, num_access_points: 40, num_devices: 25, duration: 3_600 },
      })),
    });
    say("Letting the access points report for five minutes.");
    await sleep(HISTORY_MS);
    const lifi = ap_ids.find((apId) => apId.includes("lifi")) ?? ap_ids.at(-1) ?? "";
    await call(`/api/v1/send_command?agent_id=${encodeURIComponent(ap_ids[0] ?? "")}&command=power_off`, {});

    browser = await launchBrowser();
    await picture(browser, url, "/", "overview.png", "light");
    await picture(browser, url, `/#/access-points/${encodeURIComponent(lifi)}`, "access-point.png", "dark");
  } finally {
    await stop();
  }
}

async function picture(browser: Browser, url: string, path: string, file: string, colorScheme: "light" | "dark") {
  const visitor = await visit(browser, url, {
    colorScheme,
    deviceScaleFactor: 1,
    viewport: { width: 1280, height: 860 },
  });
  const { page } = visitor;
  await page.getByLabel("E-mail").fill(ADMIN.username);
  await page.getByLabel("Password").fill(ADMIN.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation").waitFor();
  await page.goto(`${url}${path}`);
  // Outlines, names and the first points have come by then.
  await page.waitForLoadState("networkidle").catch(() => {});
  await sleep(4_000);
  await page.screenshot({ path: join(ROOT, "docs", file) });
  say(`docs/${file}`);
  await visitor.close();
}

async function logIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/token/?login_type=user`, {
    method: "POST",
    body: new URLSearchParams(ADMIN),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}

const caller =
  (url: string, token: string) =>
  async <T>(path: string, body: object): Promise<T> => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };

await runCommand(main);
