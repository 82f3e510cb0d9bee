import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { parseCommand, print, runCommand } from "../../../src/programs/shared/cli.ts";
import { CLEANUP_NOTICE, interruption } from "../../../src/programs/shared/interruption.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { launchBrowser, visit } from "../browser.ts";
import { ApiClient, untilTownsLoaded } from "../client.ts";
import { withProduct } from "../product.ts";
import { startCollectors } from "./collected-pictures.ts";
import { graphPicture, startWriterAndReader, WRITTEN_AP } from "./integration-pictures.ts";

const SPEC = {
  name: "npm run screenshots",
  summary: `Takes the pictures of the documentation: runs the product in a temporary folder, spins up access points, lets them
report for a while, and visits the page in Chromium. Writes docs/overview.png, docs/access-point.png and docs/alerts.png, and with
Debian's Prometheus also docs/remote-read.png and docs/remote-write.png. docs/opentelemetry.png and others show what collectors of other
systems have sent.`,
  options: {
    only: { type: "string", value: "name", description: "Take only pictures whose names begin with this" },
  },
} as const;

const ADMIN = { username: "operator@example.com", password: "a password for pictures" };
/** As much as a chart of five minutes can show. */
const HISTORY_MS = 5 * 60_000;

const PLACES = {
  "5G": ["London", "Bristol", "Manchester", "Paris", "Berlin", "Madrid", "Rome", "Vienna", "Athens", "Warsaw"],
  WiFi: ["London", "Edinburgh", "Dublin", "Amsterdam", "Brussels", "Munich", "Lisbon", "Prague", "Zurich"],
  LiFi: ["Bristol", "Eindhoven", "Oxford", "Barcelona", "Milan", "Oslo"],
};

/** Alerts about access points of two sites. */
async function alerts(client: ApiClient, apIds: readonly string[], token: string): Promise<void> {
  for (const [i, apId] of apIds.slice(0, 4).entries()) {
    const labels = { site: i % 2 === 0 ? "uk/bristol/library" : "de/berlin" };
    await client.call(`/api/v1/agents/${encodeURIComponent(apId)}/labels`, { method: "PUT", token, body: labels });
  }
  const spec = {
    ...{ selector: "site", severity: "warning", text: "{{ap_id}}: load {{value}}" },
    ...{ condition: { metric: "load", op: ">", value: 0.3 }, clear: { for_s: 600 } },
  };
  await client.call("/api/v1/alerts/rules", { token, body: { name: "High load", spec } });
}

/** Returns the name of an access point over light, after all access points have reported for a while and one was switched off. */
async function network(client: ApiClient, token: string): Promise<string> {
  const counts = { num_access_points: 40, num_devices: 25, duration: 3_600 };
  const emulators = Object.entries(PLACES).map(([type, locations]) => ({
    access_point_type: type,
    locations,
    ...counts,
  }));
  await untilTownsLoaded(client, token);
  const { ap_ids } = await client.call<{ ap_ids: string[] }>("/api/v1/emulator/spinup", { token, body: { emulators } });
  print("Letting the access points report for five minutes.");
  await sleep(HISTORY_MS);
  await alerts(client, ap_ids, token);
  const command = `/api/v1/send_command?agent_id=${encodeURIComponent(ap_ids[0] ?? "")}&command=power_off`;
  await client.call(command, { method: "POST", token });
  return ap_ids.find((apId) => apId.includes("lifi")) ?? ap_ids.at(-1) ?? "";
}

interface Picture {
  file: string;
  path: string;
  colorScheme: "light" | "dark";
}

async function picture(browser: Browser, url: string, { file, path, colorScheme }: Picture): Promise<void> {
  const viewport = { width: 1280, height: 860 };
  const { page, close } = await visit(browser, url, { colorScheme, deviceScaleFactor: 1, viewport });
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
  await close();
}

await runCommand(async () => {
  const command = parseCommand(SPEC);
  if (command === undefined) return;
  const { only = "" } = command.values;
  const env = { ADMIN_USERNAME: ADMIN.username, ADMIN_PASSWORD: ADMIN.password, LOG_REQUESTS: "failures" };
  await withProduct("pictures", env, interruption(CLEANUP_NOTICE), async ({ url }, folder) => {
    const client = new ApiClient(url);
    const token = await client.logIn(ADMIN.username, ADMIN.password);
    const supervisor = new Supervisor();
    const collectors = await startCollectors({ client, token, supervisor, folder });
    try {
      const prometheus = await startWriterAndReader(client, token, supervisor, folder);
      const pageOf = (apId: string) => `/#/access-points/${encodeURIComponent(apId)}`;
      const pictures: Picture[] = [
        { file: "access-point.png", path: pageOf(await network(client, token)), colorScheme: "dark" },
        { file: "overview.png", path: "/", colorScheme: "light" },
        { file: "alerts.png", path: "/#/alerts", colorScheme: "light" },
      ];
      if (prometheus !== undefined)
        pictures.push({ file: "remote-write.png", path: pageOf(WRITTEN_AP), colorScheme: "light" });
      for (const { file, apId } of collectors.pictures)
        pictures.push({ file, path: pageOf(apId), colorScheme: "light" });
      await using browser = await launchBrowser();
      for (const one of pictures.filter(({ file }) => file.startsWith(only))) await picture(browser, url, one);
      if (prometheus !== undefined && "remote-read.png".startsWith(only))
        await graphPicture(browser, prometheus, "remote-read.png");
    } finally {
      await collectors.stop();
      await supervisor.stop();
    }
  });
});
