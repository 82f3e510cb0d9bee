import type { ScopedAgent } from "../../auth/agent-scope.ts";
import { scopeFilter } from "../../auth/agent-scope.ts";
import type { Actor } from "../../auth/identity.ts";
import { visibleAgents } from "../../auth/permissions.ts";
import { Malformed } from "../../lib/errors.ts";
import { newStepBudget, type StepBudget } from "../../protocols/prometheus/regex.ts";
import { RegexError } from "../../protocols/prometheus/regex-syntax.ts";
import {
  decodeReadRequest,
  encodeFrames,
  encodeReadResponse,
  type ReadQuery,
  type TimeSeries,
} from "../../protocols/prometheus/remote-read.ts";
import {
  compareSeries,
  INFO_METRIC,
  infoSeriesOf,
  type SeriesLabels,
  SeriesSelector,
  seriesOf,
  storedNamesOf,
  toSeriesLabels,
} from "../../protocols/prometheus/series.ts";
import { MAX_AHEAD_MS } from "../samples.ts";
import type { PointRange } from "../store/export-queries.ts";
import { agentLabelOf, type ExportSources, storedSinceMs } from "./export-sources.ts";
import { type CountedSeries, MAX_JOINED_METRICS, selectPoints } from "./selected-points.ts";

/** Runs the queries of Prometheus' remote read protocol. */

export type RemoteReadResponse =
  | { type: "samples"; body: Uint8Array<ArrayBuffer> }
  | { type: "chunks"; frames: AsyncGenerator<Uint8Array<ArrayBuffer>> };

/** Series of one request. Their names are in memory together. */
const MAX_SERIES = 50_000;
/** Stored series of one request whose names are compared with the labels of its queries. The journals limit those that are pending. */
const MAX_NAMES = 1_000_000;
/** Samples of one request. A response of type `samples` is in memory as a whole. */
const MAX_SAMPLES = { samples: 500_000, chunks: 10_000_000 };

/** Prometheus looks back 5 minutes for a sample by default, and an installation may look back less. Few are enough for a long period. */
const INFO_INTERVAL_MS = 60_000;
const LONG_INFO_INTERVAL_MS = 4 * 60_000;
const LONG_PERIOD_MS = 6 * 3_600_000;

/** A series of a response: of a stored metric, or of the agent itself. */
interface FoundSeries extends CountedSeries {
  labels: SeriesLabels;
  aliases?: string[];
}

interface Result {
  /** Yields the series in the order of their labels. A long one is in several parts. */
  read: () => AsyncGenerator<TimeSeries>;
  count: number;
}

/** Throws `Malformed` or `ProtocolError` if the request is not valid or selects too much. */
export async function readRemotely(
  sources: ExportSources,
  actor: Actor,
  body: Uint8Array,
): Promise<RemoteReadResponse> {
  const { queries, responseType } = decodeReadRequest(body);
  const isVisible = scopeFilter(visibleAgents(actor));
  const agents = (await sources.agents()).filter(isVisible);
  const context: Context = {
    agents,
    agentLabel: agentLabelOf(actor),
    budget: newStepBudget(),
    left: { series: MAX_SERIES, names: MAX_NAMES },
  };
  const results: Result[] = [];
  let left = MAX_SAMPLES[responseType];
  for (const query of queries) {
    const result = await withRegexErrors(() => select(sources, query, context));
    left -= result.count;
    if (left < 0) throw new Malformed(`The request selects more than ${MAX_SAMPLES[responseType]} samples`);
    results.push(result);
  }
  if (responseType === "chunks") return { type: "chunks", frames: toFrames(results) };
  return { type: "samples", body: encodeReadResponse(await Promise.all(results.map(collect))) };
}

async function withRegexErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof RegexError ? new Malformed(error.message) : error;
  }
}

async function* toFrames(results: readonly Result[]): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for (const [i, result] of results.entries()) for await (const series of result.read()) yield* encodeFrames(i, series);
}

/** Joins the parts of long series. */
async function collect(result: Result): Promise<TimeSeries[]> {
  const all: { labels: TimeSeries["labels"]; samples: TimeSeries["samples"][number][] }[] = [];
  for await (const { labels, samples } of result.read()) {
    const last = all.at(-1);
    if (last?.labels !== labels) all.push({ labels, samples: [...samples] });
    else for (const sample of samples) last.samples.push(sample);
  }
  return all;
}

interface Context {
  agents: readonly ScopedAgent[];
  agentLabel: string;
  budget: StepBudget;
  /** What the rest of the request may still select and read. */
  left: { series: number; names: number };
}

async function select(
  sources: ExportSources,
  { startMs, endMs, matchers }: ReadQuery,
  { agents, agentLabel, budget, left }: Context,
): Promise<Result> {
  const selector = new SeriesSelector(matchers, agentLabel, budget);
  const chosen = agents.filter(({ apId }) => selector.selectsAgent(apId));
  const range = {
    fromMs: Math.max(startMs, storedSinceMs(sources)),
    toMs: Math.min(endMs, sources.now() + MAX_AHEAD_MS),
  };
  if (chosen.length === 0 || range.fromMs > range.toMs) return { read: noSeries, count: 0 };
  const points = await selectPoints(sources.store, sources.shards, {
    ...range,
    apIds: chosen.map(({ apId }) => apId),
    metrics: selector.names?.filter((name) => name !== INFO_METRIC).map(storedNamesOf),
    onPage(size) {
      left.names -= size;
      if (left.names < 0) throw new Malformed(`The request reads the names of more than ${MAX_NAMES} series`);
    },
    isSelected({ apId, metric }) {
      const series = seriesOf(metric, apId, agentLabel);
      // The name belongs to the series of the agents.
      if (series.name === INFO_METRIC || !selector.selects(series)) return false;
      left.series -= 1;
      if (left.series < 0) throw new Malformed(`The request selects more than ${MAX_SERIES} series`);
      return true;
    },
  });

  const all: FoundSeries[] = [];
  const infoTimes = timesOfInfo(range);
  const info = new Set<FoundSeries>();
  if (selector.selectsName(INFO_METRIC)) {
    for (const { apId, labels } of chosen) {
      const series = infoSeriesOf(labels, apId, agentLabel);
      if (!selector.selects(series)) continue;
      const one = {
        apId,
        metric: INFO_METRIC,
        labels: toSeriesLabels(series, selector.isEscaped),
        count: infoTimes.length,
      };
      info.add(one);
      all.push(one);
    }
  }
  for (const { apId, metric, count } of points.series) {
    const labels = toSeriesLabels(seriesOf(metric, apId, agentLabel), selector.isEscaped);
    all.push({ apId, metric, count, labels });
  }
  const found = joinEqual(all);

  return {
    count: found.reduce((sum, { count }) => sum + count, 0),
    // The metric of an agent itself has one name, so its series are next to each other, unless labels come before the name.
    async *read() {
      for (const group of groupByKind(found, (one) => info.has(one))) {
        if (group.isMatch) {
          for (const { labels } of group.items) yield { labels, samples: infoTimes };
          continue;
        }
        for await (const { series, points: samples } of points.read(group.items))
          yield { labels: series.labels, samples };
      }
    },
  };
}

/**
 * Sorts series, and joins those with the same labels. Agents may report any name, so several metrics can differ in what Prometheus ignores:
 * the order of labels, and labels without a value. It rejects a response that repeats a series.
 */
function joinEqual(series: readonly FoundSeries[]): FoundSeries[] {
  // By name, too: the first metric then stays the same when its points are stored.
  const sorted = series.toSorted((a, b) => compareSeries(a.labels, b.labels) || (a.metric < b.metric ? -1 : 1));
  const joined: FoundSeries[] = [];
  for (const one of sorted) {
    const last = joined.at(-1);
    if (last === undefined || compareSeries(last.labels, one.labels) !== 0) {
      joined.push(one);
      continue;
    }
    last.aliases ??= [];
    // Only an agent that varies a name on purpose has more.
    if (last.aliases.length + 1 === MAX_JOINED_METRICS) continue;
    last.aliases.push(one.metric);
    last.count += one.count;
  }
  return joined;
}

async function* noSeries(): AsyncGenerator<TimeSeries> {}

/** Divides a list into runs of items that meet a condition, or do not. */
function groupByKind<T>(items: readonly T[], condition: (item: T) => boolean): { isMatch: boolean; items: T[] }[] {
  const groups: { isMatch: boolean; items: T[] }[] = [];
  for (const item of items) {
    const isMatch = condition(item);
    const last = groups.at(-1);
    if (last?.isMatch === isMatch) last.items.push(item);
    else groups.push({ isMatch, items: [item] });
  }
  return groups;
}

/** Returns the samples of a series that says that an agent exists: its value is always 1. */
function timesOfInfo({ fromMs, toMs }: PointRange): { tsMs: number; value: number }[] {
  const intervalMs = toMs - fromMs > LONG_PERIOD_MS ? LONG_INFO_INTERVAL_MS : INFO_INTERVAL_MS;
  const firstMs = Math.ceil(fromMs / intervalMs) * intervalMs;
  const count = Math.max(0, Math.floor((toMs - firstMs) / intervalMs) + 1);
  return Array.from({ length: count }, (_, i) => ({ tsMs: firstMs + i * intervalMs, value: 1 }));
}
