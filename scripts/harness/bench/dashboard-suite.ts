import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents, makeUser, type TestAgent } from "../accounts.ts";
import { launchBrowser, visit } from "../browser.ts";
import type { ApiClient } from "../client.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import type { BenchContext } from "./suite.ts";

/** The dashboard in Chromium, measured by traces of the browser. */

const METRICS = Array.from({ length: 8 }, (_, i) => `metric_${i + 1}`);
/** The most points that the service returns for one series. */
const POINTS = 2_000;
const LIVE_WINDOW_S = 15 * 60;
const SMOOTH_MS = 100;
const REDRAW_MS = 10;
const HOUR_MS = 3_600_000;

export async function benchDashboard(context: BenchContext): Promise<void> {
  const { product, client, isQuick, folder } = context;
  const count = isQuick ? 1_000 : 10_000;
  print(`Creating ${count} access points worldwide, and one with ${METRICS.length} metrics of ${POINTS} points.`);
  const { username, token } = await makeUser(product.dataDir, "bench-dashboard@example.com");
  await makeAgents(product.dataDir, "bench-map", count, configurationOf);
  const [charted] = (await makeAgents(product.dataDir, "bench-chart", 1)) as [TestAgent];
  await fillLiveWindow(client, charted);

  const browser = await launchBrowser();
  try {
    const { page, close } = await visit(browser, product.url);
    const [expiresAtMs, renewAtMs] = [Date.now() + HOUR_MS, Date.now() + HOUR_MS];
    const session = JSON.stringify({ username, token, expiresAtMs, renewAtMs, isAdministrator: false });
    await page.evaluate((text) => sessionStorage.setItem("session", text), session);
    await page.reload();
    await page.locator("canvas").first().waitFor();
    await page.getByText(count.toLocaleString("en")).first().waitFor();
    await sleep(2_000);
    const trace = (names: string[], work: () => Promise<void>) => traced(browser, page, folder, names, work);
    await benchMap(context, page, count, trace);
    await benchLiveCharts(context, page, charted, trace);
    await close();
  } finally {
    await browser.close();
  }
}

type Trace = (names: string[], work: () => Promise<void>) => Promise<TraceEvent[]>;

async function benchMap({ report }: BenchContext, page: Page, count: number, trace: Trace): Promise<void> {
  for (const [what, interact] of Object.entries(INTERACTIONS)) {
    const box = await page.locator("canvas").first().boundingBox();
    if (box === null) throw new Error("The map is not on the page.");
    const tasks = await trace(["RunTask", "ThreadControllerImpl::RunTask"], () => interact(page, box));
    const longestMs = Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1_000));
    const elapsedMs = Math.max(0, ...tasks.map(({ dur = 0 }) => dur / 1_000));
    report.add(`map of ${count}: ${what}, longest task`, longestMs, "ms of CPU", {
      details: { tasks: tasks.length, "elapsed ms": elapsedMs },
    });
    const isKept = longestMs < SMOOTH_MS;
    report.require({ what: `${what} stays under ${SMOOTH_MS} ms`, isKept, details: { ms: Math.round(longestMs) } });
  }
}

async function benchLiveCharts(context: BenchContext, page: Page, agent: TestAgent, trace: Trace): Promise<void> {
  const { product, client, report, seconds } = context;
  await page.goto(`${product.url}/#/access-points/bench-chart-0?window=15m&metrics=${METRICS.join()}`);
  const lastChart = page.locator(".uplot").nth(METRICS.length - 1);
  await lastChart.waitFor();
  await sleep(3_000);
  const reporting = setInterval(() => void post(client, agent, [sampleOf(Date.now())]).catch(() => {}), 1_000);
  try {
    const watchedS = Math.max(5, seconds);
    const names = ["FunctionCall", "RunMicrotasks", "FireAnimationFrame"];
    const perSecondMs = async () => scriptMs(await trace(names, () => sleep(watchedS * 1_000))) / watchedS;
    const liveMs = await perSecondMs();
    await page.getByRole("button", { name: "Pause" }).click();
    const pausedMs = await perSecondMs();
    const ms = liveMs - pausedMs;
    report.add(
      `live charts, ${METRICS.length} metrics of ${POINTS} points: to fetch and draw new points, each second`,
      ms,
      "ms of CPU",
      { details: { "whole page": liveMs, "with paused charts": pausedMs } },
    );
    const what = `new points are drawn in less than ${REDRAW_MS} ms`;
    report.require({ what, isKept: ms < REDRAW_MS, details: { ms: ms.toFixed(1) } });
  } finally {
    clearInterval(reporting);
  }
}

const TYPES = ["5G", "WiFi", "LiFi"];

/** Places access points around 97 towns, so that some are alone and others close together. */
function configurationOf(i: number): Record<string, unknown> {
  const town = (i * i) % 97;
  const latitude = -50 + ((town * 37) % 110) + Math.sin(i) * 2;
  const longitude = -170 + ((town * 71) % 340) + Math.cos(i) * 2;
  return { access_point_type: TYPES[i % TYPES.length], geolocation: { latitude, longitude } };
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

const INTERACTIONS: Record<string, (page: Page, box: Box) => Promise<void>> = {
  "dragging it": async (page, { x, y, width, height }) => {
    const [centreX, centreY] = [x + width / 2, y + height / 2];
    await page.mouse.move(centreX, centreY);
    await page.mouse.down();
    for (let step = 0; step < 60; step++) {
      await page.mouse.move(centreX + 3 * step, centreY + Math.sin(step / 5) * 40);
      await sleep(16);
    }
    await page.mouse.up();
  },
  "zooming in and out": async (page, { x, y, width, height }) => {
    await page.mouse.move(x + width / 3, y + height / 3);
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
  "pointing at it": async (page, { x, y, width, height }) => {
    for (let step = 0; step < 60; step++) {
      await page.mouse.move(x + (width * step) / 60, y + height * (0.3 + 0.4 * Math.sin(step / 7) ** 2));
      await sleep(16);
    }
  },
};

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** In microseconds: start, duration, and CPU time of the thread. */
  ts: number;
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/** Returns the CPU time of the page's code, including drawing. Other work on the machine does not add to it. */
function scriptMs(events: readonly TraceEvent[]): number {
  let [sumUs, endUs] = [0, 0];
  for (const { ts, dur = 0, tdur = 0 } of events) {
    // The time of an outer event includes the events within it.
    if (ts >= endUs) sumUs += tdur;
    endUs = Math.max(endUs, ts + dur);
  }
  return sumUs / 1_000;
}

/** Traces the work. Returns the events with these names on the page's main thread. */
async function traced(browser: Browser, page: Page, folder: string, names: string[], work: () => Promise<void>) {
  const path = join(folder, "trace.json");
  const categories = ["devtools.timeline", "toplevel", "disabled-by-default-devtools.timeline"];
  await browser.startTracing(page, { path, categories });
  await work();
  await browser.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] };
  const main = traceEvents.find(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain");
  return traceEvents
    .filter(({ name, pid, tid }) => names.includes(name) && pid === main?.pid && tid === main.tid)
    .sort((one, other) => one.ts - other.ts);
}

const sampleOf = (tsMs: number) => ({
  ts: tsMs,
  payload: Object.fromEntries(METRICS.map((metric, i) => [metric, Math.sin(tsMs / 20_000 + i) + i])),
});

async function fillLiveWindow(client: ApiClient, agent: TestAgent): Promise<void> {
  const nowMs = Date.now();
  const stepMs = (LIVE_WINDOW_S * 1_000) / POINTS;
  const samples = Array.from({ length: POINTS - 1 }, (_, i) => sampleOf(Math.round(nowMs - (POINTS - 1 - i) * stepMs)));
  for (let from = 0; from < samples.length; from += 500) await post(client, agent, samples.slice(from, from + 500));
}

const post = (client: ApiClient, { token }: TestAgent, samples: object[]): Promise<unknown> =>
  client.call(UPDATE_PATH, { token, body: { samples } });
