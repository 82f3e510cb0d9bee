import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { launchBrowser, visit } from "../browser.ts";
import type { BenchContext } from "./context.ts";

/** The dashboard in Chromium: what a person waits for, by the browser's own trace. */

const METRICS = Array.from({ length: 8 }, (_, i) => `metric_${i + 1}`);
/** As many points as the service gives for one series. */
const POINTS = 2_000;
const LIVE_WINDOW_S = 15 * 60;
const SMOOTH_MS = 100;
const REDRAW_MS = 10;

export async function benchDashboard({ product, report, isQuick, seconds, folder }: BenchContext): Promise<void> {
  const count = isQuick ? 1_000 : 10_000;
  print(
    `Making ${count} access points all over the world, and one with ${METRICS.length} metrics of ${POINTS} points.`,
  );
  const { username, token } = await makeUser(product.dataDir, "bench-dashboard@example.com");
  await makeAgents(product.dataDir, "bench-map", count, configurationOf);
  const [charted] = await makeAgents(product.dataDir, "bench-chart", 1);
  if (charted === undefined) throw new Error("There is no access point to chart.");
  await fill(product.url, charted);

  const browser = await launchBrowser();
  try {
    const { page, close } = await visit(browser, product.url);
    await page.evaluate((session) => sessionStorage.setItem("session", JSON.stringify(session)), {
      username,
      token,
      expiresAtMs: Date.now() + 3_600_000,
      renewAtMs: Date.now() + 3_600_000,
      isAdministrator: false,
    });
    await page.reload();
    const map = page.locator("canvas").first();
    await map.waitFor();
    await page.getByText(count.toLocaleString("en")).first().waitFor();
    await sleep(2_000);

    for (const [what, interact] of Object.entries(INTERACTIONS)) {
      const tasks = await traced(browser, page, folder, TASKS, async () => await interact(page));
      const longestMs = Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1_000));
      report.add({
        what: `map of ${count}: ${what}, longest task`,
        value: longestMs,
        unit: "ms of CPU",
        details: { tasks: tasks.length, "by the clock, ms": Math.max(0, ...tasks.map(({ dur = 0 }) => dur / 1_000)) },
      });
      report.require({
        what: `${what} stays under ${SMOOTH_MS} ms`,
        isKept: longestMs < SMOOTH_MS,
        details: { ms: Math.round(longestMs) },
      });
    }

    await page.goto(`${product.url}/#/access-points/bench-chart-0?window=15m&metrics=${METRICS.join()}`);
    await page
      .locator(".uplot")
      .nth(METRICS.length - 1)
      .waitFor();
    await sleep(3_000);
    const reporting = setInterval(() => void post(product.url, charted, [sample(Date.now())]).catch(() => {}), 1_000);
    try {
      const watchedS = Math.max(5, seconds);
      const eachSecondMs = async () =>
        (await tracedScriptMs(browser, page, folder, async () => await sleep(watchedS * 1_000))) / watchedS;
      const liveMs = await eachSecondMs();
      await page.getByRole("button", { name: "Pause" }).click();
      const restMs = await eachSecondMs();
      report.add({
        what: `live charts, ${METRICS.length} metrics of ${POINTS} points: to get and draw what is new, each second`,
        value: liveMs - restMs,
        unit: "ms of CPU",
        details: { "whole page": liveMs, "the same with the charts at rest": restMs },
      });
      report.require({
        what: `new points are on the charts after less than ${REDRAW_MS} ms`,
        isKept: liveMs - restMs < REDRAW_MS,
        details: { ms: (liveMs - restMs).toFixed(1) },
      });
    } finally {
      clearInterval(reporting);
    }
    await close();
  } finally {
    await browser.close();
  }
}

const TYPES = ["5G", "WiFi", "LiFi"];

/** Around as many towns as there are, so that some are alone and others crowded. */
function configurationOf(i: number): Record<string, unknown> {
  const town = (i * i) % 97;
  return {
    access_point_type: TYPES[i % TYPES.length],
    geolocation: {
      latitude: -50 + ((town * 37) % 110) + Math.sin(i) * 2,
      longitude: -170 + ((town * 71) % 340) + Math.cos(i) * 2,
    },
  };
}

/** What a person does with a map. */
const INTERACTIONS: Record<string, (page: Page) => Promise<void>> = {
  "dragging it": async (page) => {
    const box = await boxOf(page);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    for (let step = 0; step < 60; step++) {
      await page.mouse.move(box.x + box.width / 2 + 3 * step, box.y + box.height / 2 + Math.sin(step / 5) * 40);
      await sleep(16);
    }
    await page.mouse.up();
  },
  "zooming in and out": async (page) => {
    const box = await boxOf(page);
    await page.mouse.move(box.x + box.width / 3, box.y + box.height / 3);
    for (let step = 0; step < 40; step++) {
      await page.mouse.wheel(0, step < 20 ? -120 : 120);
      await sleep(25);
    }
  },
  "searching by name": async (page) => {
    for (const text of ["b", "be", "bench-map-12", "bench", ""]) {
      await page.getByPlaceholder("Search by name").fill(text);
      await sleep(300);
    }
  },
  "pointing at it": async (page) => {
    const box = await boxOf(page);
    for (let step = 0; step < 60; step++) {
      await page.mouse.move(
        box.x + (box.width * step) / 60,
        box.y + box.height * (0.3 + 0.4 * Math.sin(step / 7) ** 2),
      );
      await sleep(16);
    }
  },
};

async function boxOf(page: Page) {
  const box = await page.locator("canvas").first().boundingBox();
  if (box === null) throw new Error("The map is not on the page.");
  return box;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** All in microseconds: when it began, how long it took, and how much of that its thread ran. */
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

const TASKS = ["RunTask", "ThreadControllerImpl::RunTask"];

/** How much the page's own code computed in all, drawing included: CPU time, which others on the machine do not add to. */
async function tracedScriptMs(browser: Browser, page: Page, folder: string, work: () => Promise<void>) {
  const events = await traced(browser, page, folder, ["FunctionCall", "RunMicrotasks", "FireAnimationFrame"], work);
  let [sumUs, endUs] = [0, 0];
  for (const { ts, dur = 0, tdur = 0 } of events) {
    // What lies within another one is counted with that.
    if (ts >= endUs) sumUs += tdur;
    endUs = Math.max(endUs, ts + dur);
  }
  return sumUs / 1_000;
}

async function traced(browser: Browser, page: Page, folder: string, names: string[], work: () => Promise<void>) {
  const path = join(folder, "trace.json");
  await browser.startTracing(page, {
    path,
    categories: ["devtools.timeline", "toplevel", "disabled-by-default-devtools.timeline"],
  });
  await work();
  await browser.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] };
  const main = traceEvents.find(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain");
  return traceEvents
    .filter(({ name, pid, tid }) => names.includes(name) && pid === main?.pid && tid === main.tid)
    .sort((one, other) => one.ts - other.ts);
}

const sample = (tsMs: number) => ({
  ts: tsMs,
  payload: Object.fromEntries(METRICS.map((metric, i) => [metric, Math.sin(tsMs / 20_000 + i) + i])),
});

/** The live window, as densely as it can be shown. */
async function fill(url: string, agent: TestAgent): Promise<void> {
  const nowMs = Date.now();
  const stepMs = (LIVE_WINDOW_S * 1_000) / POINTS;
  const samples = Array.from({ length: POINTS - 1 }, (_, i) => sample(Math.round(nowMs - (POINTS - 1 - i) * stepMs)));
  for (let from = 0; from < samples.length; from += 500) await post(url, agent, samples.slice(from, from + 500));
}

async function post(url: string, { token }: TestAgent, samples: object[]): Promise<void> {
  const response = await fetch(`${url}/api/v1/agent_update/update`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ samples }),
  });
  if (!response.ok) throw new Error(`The access point cannot report: ${response.status} ${await response.text()}`);
}
