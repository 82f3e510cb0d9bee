import { print } from "../../../../src/programs/shared/cli.ts";
import { makeAgents, type TestAgent } from "../../accounts.ts";
import { countPoints, untilMerged } from "../../clickhouse.ts";
import type { ApiClient } from "../../client.ts";
import { callbackPath, streamPath } from "../../job-socket.ts";
import { until } from "../../product.ts";
import { UPDATE_PATH } from "../../telemetry-oracle.ts";
import { cpuOf } from "../../usage.ts";
import type { LoadOptions, LoadResult } from "../load.ts";
import type { Details } from "../report.ts";
import { throughSocket } from "../stream-suite.ts";
import { type BenchContext, CONNECTIONS, fields, inTurns, load, ME } from "../suite.ts";
import { findPeerPrograms, startPeer } from "./peer.ts";

/** The product next to the usual alternative, a Python service with InfluxDB. Both run on this machine and take turns. */

/** The agents with charts. The others report, one over each connection. */
const CHARTED = 10;
const AGENTS = CONNECTIONS + CHARTED;
const OF = "the Python service";
const STORED_WITHIN_MS = 120_000;
const POLL_MS = 250;

/** One of the two services. */
interface Side {
  url: string;
  client: ApiClient;
  userToken: string;
  agents: readonly TestAgent[];
  /** The processes whose CPU time counts: the service and its store of telemetry. */
  components: string[];
  pidOf(component: string): number;
  countPoints(field: string): Promise<number>;
}

type Sides = Record<"peer" | "ours", Side>;

/** Returns how to install what is missing, or undefined if everything is installed. */
export async function missingPackages(): Promise<string | undefined> {
  const { missing } = await findPeerPrograms();
  if (missing.length === 0) return undefined;
  return `install Debian's ${missing.join(", ")}:\n  apt-get install --no-install-recommends ${missing.join(" ")}`;
}

export async function benchPeer(context: BenchContext): Promise<void> {
  const { product, client, clickhouse, user, supervisor, folder } = context;
  const { python } = await findPeerPrograms();
  print("Starting the Python service and InfluxDB.");
  const sides: Sides = {
    peer: {
      ...(await startPeer({ python, supervisor, folder, agents: AGENTS })),
      components: ["uvicorn", "influxd"],
    },
    ours: {
      url: product.url,
      client,
      userToken: user.token,
      agents: await makeAgents(product.dataDir, "peer", AGENTS),
      components: ["worker", "clickhouse"],
      pidOf: (component) => product.pidOf(component),
      countPoints: (field) => countPoints(clickhouse, field, "peer-%"),
    },
  };
  await compareOwnAccount(context, sides);
  await compareReports(context, sides);
  // Merges use the same cores.
  await untilMerged(clickhouse);
  await compareStreams(context, sides);
  await compareCharts(context, sides);
}

async function loadSide(context: BenchContext, side: Side, next: LoadOptions["next"]): Promise<LoadResult> {
  const result = await load(context, next, { url: side.url, components: side.components, processes: side });
  // An error may take less time than a response.
  if (!result.isFlawless) context.report.require("every response has the status 200", false, result.details);
  return result;
}

const perSecond = (result: { perSecond: number }): number => result.perSecond;

/** Returns the CPU time of all processes. Other work on the machine affects it less than the rate. */
const cpuUs = (details: Details): number =>
  Object.entries(details).reduce(
    (sum, [name, detail]) => (name.startsWith("CPU µs of") ? sum + Number(detail) : sum),
    0,
  );

/** Measures both services in turns, and reports both with their ratio. */
async function compare<T extends Pick<LoadResult, "perSecond" | "details">>(
  { report }: BenchContext,
  sides: Sides,
  { what, unit, wanted }: { what: string; unit: string; wanted: string },
  measure: (side: Side) => Promise<T>,
): Promise<Record<keyof Sides, T>> {
  const results = await inTurns({ peer: () => measure(sides.peer), ours: () => measure(sides.ours) }, perSecond);
  const { peer, ours } = results;
  report.add(`${OF}: ${what}`, peer.perSecond, unit, peer.details);
  const details = { ...ours.details, "CPU next to it": cpuUs(ours.details) / cpuUs(peer.details) };
  report.add(what, ours.perSecond, unit, details, { of: OF, value: ours.perSecond / peer.perSecond, wanted });
  return results;
}

async function compareOwnAccount(context: BenchContext, sides: Sides): Promise<void> {
  await compare(context, sides, { what: `GET ${ME}`, unit: "/s", wanted: "at least 3" }, async (side) => {
    return await loadSide(context, side, () => ({ path: ME, token: side.userToken }));
  });
}

/** Compares reports until they are stored. The product stores a report before it answers, the Python service only afterwards. */
async function compareReports(context: BenchContext, sides: Sides): Promise<void> {
  let isAllStored = true;
  const measure = async (side: Side): Promise<LoadResult> => {
    const before = await side.countPoints("field_0");
    const cpuPer = cpuOf(side, side.components);
    const fromMs = Date.now();
    const next = (connection: number, i: number) => {
      // A time of its own for each report, since a second sample of the same agent and time replaces the first.
      const body = JSON.stringify({ ts: fromMs + i, payload: fields("field", i) });
      return { path: UPDATE_PATH, token: side.agents[connection]?.token, body };
    };
    const result = await load(context, next, { url: side.url });
    let stored = 0;
    const isStored = async () => {
      stored = (await side.countPoints("field_0")) - before;
      return stored >= result.count;
    };
    await until(isStored, STORED_WITHIN_MS, POLL_MS).catch(() => {});
    isAllStored &&= result.isFlawless && stored === result.count;
    const counts = { reports: result.count, stored };
    return { ...result, details: { ...result.details, ...cpuPer(result.count), ...counts } };
  };
  const what = `reports over HTTP: single samples of 10 fields, ${CONNECTIONS} agents at a time`;
  const { peer, ours } = await compare(context, sides, { what, unit: "/s", wanted: "at least 1.5" }, measure);
  const stored = { [`of ${OF}`]: String(peer.details.stored), "of the product": String(ours.details.stored) };
  context.report.require("both services stored every report of every round", isAllStored, stored);
}

async function compareStreams(context: BenchContext, sides: Sides): Promise<void> {
  let lost = 0;
  for (const callbacks of [1, 16]) {
    const measure = async (side: Side) => {
      const process = side.components[0] ?? "";
      const paths = { postPath: callbackPath, socketPath: (name: string) => streamPath(name) };
      const stream = { url: side.url, process, pid: side.pidOf(process), token: side.userToken, ...paths };
      const result = await throughSocket(context, stream, 1, callbacks);
      lost += result.lost;
      return result;
    };
    const what = `callback to socket: one job, ${callbacks} in flight`;
    await compare(context, sides, { what, unit: "messages/s", wanted: "at least 1.0" }, measure);
  }
  context.report.require("every message arrived", lost === 0, { lost });
}

const METRICS = ["a", "b", "c", "d"];
const LIVE_S = 300;
/** Points at the ends of the window come and go between two queries. */
const END_S = 5;

interface Chart {
  series: { metric: string; points: { ts: string; value: number }[] }[];
}

const chartPath = (apId: string): string =>
  `/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=${METRICS.join()}&window=5m`;

const sampleAt = (s: number) => {
  return { ts: s * 1000, payload: Object.fromEntries(METRICS.map((name, i) => [name, Math.sin(s / (i + 10))])) };
};

const nowS = (): number => Math.floor(Date.now() / 1000);

async function compareCharts(context: BenchContext, sides: Sides): Promise<void> {
  const charted = (side: Side) => side.agents.slice(-CHARTED);
  const filledToS = new Map<Side, number>();
  const chart = async (side: Side): Promise<Chart> => {
    const { apId, token } = charted(side).at(-1) as TestAgent;
    return await side.client.call<Chart>(chartPath(apId), { token });
  };
  /** Reports one sample per second from the last one until now, at first of five minutes. */
  const fill = async (side: Side): Promise<void> => {
    const toS = nowS();
    const fromS = filledToS.get(side) ?? toS - LIVE_S;
    const samples = Array.from({ length: toS - fromS }, (_, i) => sampleAt(fromS + 1 + i));
    if (samples.length === 0) return;
    for (const { token } of charted(side)) await side.client.call(UPDATE_PATH, { token, body: { samples } });
    filledToS.set(side, toS);
    const isNewest = async () => {
      const { series } = await chart(side);
      return Date.parse(series.at(-1)?.points.at(-1)?.ts ?? "") === toS * 1000;
    };
    await until(isNewest, STORED_WITHIN_MS, POLL_MS);
  };
  const measure = async (side: Side): Promise<LoadResult> => {
    await fill(side);
    const agents = charted(side);
    const next = (connection: number, i: number) => {
      const { apId, token } = agents[(connection + i) % CHARTED] as TestAgent;
      return { token, path: chartPath(apId) };
    };
    return await loadSide(context, side, next);
  };
  const what = `live chart: 5 minutes of 4 metrics at 1/s, ${CHARTED} agents`;
  await compare(context, sides, { what, unit: "/s", wanted: "at least 8" }, measure);

  await Promise.all([fill(sides.peer), fill(sides.ours)]);
  const [fromMs, toMs] = [(nowS() - LIVE_S + END_S) * 1000, (nowS() - END_S) * 1000];
  const pointsOf = async (side: Side): Promise<string[]> => {
    const { series } = await chart(side);
    const points = series.flatMap(({ metric, points }) => points.map((point) => ({ metric, ...point })));
    const times = points.map(({ metric, ts, value }) => ({ metric, tsMs: Date.parse(ts), value }));
    return times.filter(({ tsMs }) => tsMs > fromMs && tsMs <= toMs).map((point) => JSON.stringify(point));
  };
  const [peers, ours] = [await pointsOf(sides.peer), await pointsOf(sides.ours)];
  const isSame = peers.length >= METRICS.length * (LIVE_S - 4 * END_S) && peers.join() === ours.join();
  const counts = { [`points of ${OF}`]: peers.length, "points of the product": ours.length };
  context.report.require("both charts have the same points", isSame, counts);
}
