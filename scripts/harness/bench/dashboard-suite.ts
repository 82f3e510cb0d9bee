import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeAgents } from "../accounts.ts";
import { launchBrowser, visit } from "../browser.ts";
import { seedSamples } from "../clickhouse.ts";
import { UPDATE_PATH } from "../telemetry-oracle.ts";
import { type BenchContext, fields } from "./suite.ts";

/** The dashboard in Chromium, measured by traces of the browser. */

const METRICS = Object.keys(fields("metric", 0)).slice(0, 8);
/** The most points that the service returns for one series. */
const POINTS = 2_000;
const LIVE_WINDOW_MS = 15 * 60_000;
const SMOOTH_MS = 100;
const REDRAW_MS = 10;
const HOUR_MS = 3_600_000;

export async function benchDashboard(context: BenchContext): Promise<void> {
  const { product, isQuick } = context;
  const count = isQuick ? 1_000 : 10_000;
  print(`Creating ${count} access points worldwide.`);
  await makeAgents(product.dataDir, "bench-map", count, configurationOf);
  await using browser = await launchBrowser();
  const { page } = await visit(browser, product.url);
  const [expiresAtMs, renewAtMs] = [Date.now() + HOUR_MS, Date.now() + HOUR_MS];
  const session = JSON.stringify({ ...context.user, expiresAtMs, renewAtMs, isAdministrator: false });
  await page.evaluate((text) => sessionStorage.setItem("session", text), session);
  await page.reload();
  await page.locator("canvas").first().waitFor();
  await page.getByText(count.toLocaleString("en")).first().waitFor();
  await sleep(2_000);
  await benchMap(context, page, count);
  await benchLiveCharts(context, page);
}

async function benchMap(context: BenchContext, page: Page, count: number): Promise<void> {
  const { report } = context;
  for (const [what, interact] of Object.entries(INTERACTIONS)) {
    const box = await page.locator("canvas").first().boundingBox();
    if (box === null) throw new Error("The map is not on the page.");
    const moveTo = (x: number, y: number) => page.mouse.move(box.x + box.width * x, box.y + box.height * y);
    const tasks = await traced(context, page, ["RunTask", "ThreadControllerImpl::RunTask"], () =>
      interact(page, moveTo),
    );
    const longestMs = Math.max(0, ...tasks.map(({ tdur = 0 }) => tdur / 1_000));
    const elapsedMs = Math.max(0, ...tasks.map(({ dur = 0 }) => dur / 1_000));
    const details = { tasks: tasks.length, "elapsed ms": elapsedMs };
    report.add(`map of ${count}: ${what}, longest task`, longestMs, "ms of CPU", details);
    report.require(`${what} stays under ${SMOOTH_MS} ms`, longestMs < SMOOTH_MS, { ms: Math.round(longestMs) });
  }
}

async function benchLiveCharts(context: BenchContext, page: Page): Promise<void> {
  const { product, client, clickhouse, report, seconds } = context;
  const [agent] = await makeAgents(product.dataDir, "bench-chart", 1);
  const metrics = Object.fromEntries(METRICS.map((metric, i) => [metric, `sin(number / 40 + ${i}) + ${i}`]));
  const span = { samples: POINTS - 1, stepMs: LIVE_WINDOW_MS / POINTS, toMs: Date.now() };
  await seedSamples(clickhouse, { agents: { prefix: "bench-chart" }, ...span, metrics });
  await page.goto(`${product.url}/#/access-points/bench-chart-0?window=15m&metrics=${METRICS.join()}`);
  const lastChart = page.locator(".uplot").nth(METRICS.length - 1);
  await lastChart.waitFor();
  await sleep(3_000);
  const sendReport = () => client.call(UPDATE_PATH, { token: agent?.token, body: { payload: fields("metric", 1) } });
  // Until the end of the process: this is the last measurement.
  setInterval(() => void sendReport().catch(() => {}), 1_000).unref();
  const watchedS = Math.max(5, seconds);
  const names = ["FunctionCall", "RunMicrotasks", "FireAnimationFrame"];
  const perSecondMs = async () =>
    scriptMs(await traced(context, page, names, () => sleep(watchedS * 1_000))) / watchedS;
  const liveMs = await perSecondMs();
  await page.getByRole("button", { name: "Pause" }).click();
  const pausedMs = await perSecondMs();
  const ms = liveMs - pausedMs;
  const what = `live charts, ${METRICS.length} metrics of ${POINTS} points: to fetch and draw new points, each second`;
  report.add(what, ms, "ms of CPU", { "whole page": liveMs, "with paused charts": pausedMs });
  report.require(`new points are drawn in less than ${REDRAW_MS} ms`, ms < REDRAW_MS, { ms: ms.toFixed(1) });
}

const TYPES = ["5G", "WiFi", "LiFi"];

/** Places access points around 97 towns, so that some are alone and others close together. */
function configurationOf(i: number): Record<string, unknown> {
  const town = (i * i) % 97;
  const latitude = -50 + ((town * 37) % 110) + Math.sin(i) * 2;
  const longitude = -170 + ((town * 71) % 340) + Math.cos(i) * 2;
  return { access_point_type: TYPES[i % TYPES.length], geolocation: { latitude, longitude } };
}

/** Moves the mouse to a place on the map, given as shares of its width and height. */
type MoveTo = (x: number, y: number) => Promise<void>;

/** Takes 60 steps, from 0 to 1, in about a second. */
async function inSteps(work: (step: number) => Promise<void>): Promise<void> {
  for (let i = 0; i < 60; i++) {
    await work(i / 60);
    await sleep(16);
  }
}

const INTERACTIONS: Record<string, (page: Page, moveTo: MoveTo) => Promise<void>> = {
  "dragging it": async ({ mouse }, moveTo) => {
    await moveTo(0.5, 0.5);
    await mouse.down();
    await inSteps((step) => moveTo(0.5 + 0.2 * step, 0.5 + 0.1 * Math.sin(12 * step)));
    await mouse.up();
  },
  "zooming in and out": async ({ mouse }, moveTo) => {
    await moveTo(0.33, 0.33);
    await inSteps((step) => mouse.wheel(0, step < 0.5 ? -120 : 120));
  },
  "searching by name": async (page) => {
    for (const text of ["b", "be", "bench-map-12", "bench", ""]) {
      await page.getByPlaceholder("Search by name").fill(text);
      await sleep(300);
    }
  },
  "pointing at it": (_page, moveTo) => inSteps((step) => moveTo(step, 0.3 + 0.4 * Math.sin(9 * step) ** 2)),
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
async function traced({ folder }: BenchContext, page: Page, names: string[], work: () => Promise<void>) {
  const path = join(folder, "trace.json");
  const browser = page.context().browser();
  const categories = ["devtools.timeline", "toplevel", "disabled-by-default-devtools.timeline"];
  await browser?.startTracing(page, { path, categories });
  await work();
  await browser?.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] };
  const main = traceEvents.find(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain");
  return traceEvents
    .filter(({ name, pid, tid }) => names.includes(name) && pid === main?.pid && tid === main.tid)
    .sort((one, other) => one.ts - other.ts);
}
