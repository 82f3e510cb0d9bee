import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import { print, runCommand } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption, unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { launchBrowser, visit } from "../browser.ts";
import { ApiClient, untilTownsLoaded } from "../client.ts";
import { Product } from "../product.ts";

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
  if (values.help) return print(HELP);
  const folder = mkdtempSync(join(tmpdir(), "controller-pictures-"));
  const signal = interruption(CLEANUP_NOTICE);
  let product: Product | undefined;
  let browser: Browser | undefined;
  try {
    print("Starting the product.");
    const env = { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password, LOG_REQUESTS: "failures" };
    product = await Product.run("start", folder, env, { signal });
    const { url } = product;
    const lifi = await network(new ApiClient(url, { signal }), signal);
    browser = await launchBrowser();
    const pictures = async (browser: Browser) => {
      await picture(browser, url, "/", "overview.png", "light");
      await picture(browser, url, `/#/access-points/${encodeURIComponent(lifi)}`, "access-point.png", "dark");
    };
    await unlessAborted(pictures(browser), signal);
  } finally {
    await Promise.all([browser?.close(), product?.interrupt()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Access points that have reported for a while, one of them switched off; the name of one over light. */
async function network(client: ApiClient, signal: AbortSignal): Promise<string> {
  const emulators = Object.entries(PLACES).map(([access_point_type, locations]) => ({
    access_point_type,
    locations,
    num_access_points: 40,
    num_devices: 25,
    duration: 3_600,
  }));
  const token = await client.logIn(ADMIN.username, ADMIN.password);
  await untilTownsLoaded(client, token);
  const { ap_ids } = await client.call<{ ap_ids: string[] }>("/api/v1/emulator/spinup", { token, body: { emulators } });
  print("Letting the access points report for five minutes.");
  await sleep(HISTORY_MS, undefined, { signal });
  const command = `/api/v1/send_command?agent_id=${encodeURIComponent(ap_ids[0] ?? "")}&command=power_off`;
  await client.call(command, { method: "POST", token });
  return ap_ids.find((apId) => apId.includes("lifi")) ?? ap_ids.at(-1) ?? "";
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
  print(`docs/${file}`);
  await visitor.close();
}

await runCommand(main);
