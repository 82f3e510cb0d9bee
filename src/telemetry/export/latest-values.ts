import type { WatchedAgent } from "../../accounts/agents/agent-lists.ts";
import type { Actor } from "../../auth/identity.ts";
import { visibleAgents } from "../../auth/permissions.ts";
import { Invalid } from "../../lib/errors.ts";
import type { Selector } from "../../lib/selectors.ts";
import { escapePrometheusName } from "../../protocols/metric-name.ts";
import {
  INFO_METRIC,
  infoSeriesOf,
  type SeriesLabels,
  seriesOf,
  toSeriesLabels,
} from "../../protocols/prometheus/series.ts";
import { encodeFamilies, type MetricFamily, type TextFormat } from "../../protocols/prometheus/text-format.ts";
import { displayNameOf } from "../metric-names.ts";
import { onlineTimeoutMs, presenceOf } from "../presence.ts";
import { MAX_AHEAD_MS } from "../samples.ts";
import { agentLabelOf, type ExportSources } from "./export-sources.ts";

/** Writes the latest values of the agents that are online, for a scrape. */

/** Series in one response, which is in memory as a whole: the format wants all series of a name together. */
const MAX_SERIES = 100_000;
/** A value counts for as long as Prometheus looks back. An agent that reports less often keeps its values while it is online. */
const MIN_WINDOW_MS = 5 * 60_000;
/** For more agents it is faster to read the times of all agents. */
const FEW_AGENTS = 500;

interface LatestPoint {
  apId: string;
  metric: string;
  tsMs: number;
  value: number;
}

/** Throws `Invalid` if there are too many series. */
export async function exportLatest(
  sources: ExportSources,
  actor: Actor,
  selector: Selector,
  format: TextFormat,
): Promise<Generator<string>> {
  const { agentStore, readings, now } = sources;
  const agents = await agentStore.watched({ scope: visibleAgents(actor), selector });
  const names = agents.map(({ apId }) => apId);
  const lastSeen = await readings.lastSeen(names.length > FEW_AGENTS ? undefined : names);
  const nowMs = now();
  const online = agents.filter(({ apId, interval }) => presenceOf(apId, interval, lastSeen, nowMs).online);
  const agentLabel = agentLabelOf(actor);

  const families = new Map<string, MetricFamily & { series: MetricFamily["series"][number][] }>();
  for (const { labels, name, value } of withoutRepeats(await latestOf(sources, online, nowMs), agentLabel)) {
    const escaped = escapePrometheusName(name);
    const family = families.get(escaped) ?? { name: escaped, help: displayNameOf(name), type: "unknown", series: [] };
    family.series.push({ labels, value });
    families.set(escaped, family);
  }
  if (online.length > 0) {
    families.set(INFO_METRIC, {
      name: INFO_METRIC,
      help: "Labels of the access point, always 1",
      type: "gauge",
      series: online.map(({ apId, labels }) => ({
        labels: toSeriesLabels(infoSeriesOf(labels, apId, agentLabel)),
        value: 1,
      })),
    });
  }
  const sorted = [...families.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return encodeFamilies(sorted, format);
}

interface LatestSeries extends LatestPoint {
  name: string;
  labels: SeriesLabels;
}

/**
 * Returns one point for each set of labels: the newest one, or that of the first metric by name. Agents may report any name, so several
 * metrics can differ in what Prometheus ignores, such as the order of labels.
 */
function withoutRepeats(points: Iterable<LatestPoint>, agentLabel: string): Iterable<LatestSeries> {
  const byLabels = new Map<string, LatestSeries>();
  for (const point of points) {
    const series = seriesOf(point.metric, point.apId, agentLabel);
    // The name belongs to the series of the agents.
    if (series.name === INFO_METRIC) continue;
    const labels = toSeriesLabels(series);
    const key = JSON.stringify(labels);
    const known = byLabels.get(key);
    const isBetter =
      known === undefined || point.tsMs > known.tsMs || (point.tsMs === known.tsMs && point.metric < known.metric);
    if (isBetter) byLabels.set(key, { ...point, name: series.name, labels });
  }
  return byLabels.values();
}

/** Returns the latest point of each metric: from the store, and from the journals of the shards. */
async function latestOf(
  { store, shards }: ExportSources,
  agents: readonly WatchedAgent[],
  nowMs: number,
): Promise<Iterable<LatestPoint>> {
  if (agents.length === 0) return [];
  const toMs = nowMs + MAX_AHEAD_MS;
  const sinceMs = new Map(
    agents.map(({ apId, interval }) => [apId, nowMs - Math.max(MIN_WINDOW_MS, onlineTimeoutMs(interval))]),
  );
  const oldestMs = Math.min(...new Set(sinceMs.values()));
  const pending = await shards.pendingOfMany([...sinceMs.keys()], oldestMs, toMs);
  const latest = new Map<string, LatestPoint>();
  const add = (point: LatestPoint, isStored: boolean): void => {
    const key = `${point.apId} ${point.metric}`;
    const knownMs = latest.get(key)?.tsMs ?? 0;
    if (point.tsMs < (sinceMs.get(point.apId) ?? toMs) || point.tsMs < knownMs) return;
    // Of values with the same time, the stored one counts. Of those in a journal, the first one will be stored.
    if (point.tsMs === knownMs && !isStored) return;
    latest.set(key, point);
    if (latest.size > MAX_SERIES) throw tooMany();
  };
  for (const { apId, tsMs, metrics } of pending)
    for (const [metric, value] of Object.entries(metrics)) add({ apId, metric, tsMs, value }, false);
  // Few agents report so rarely that a longer time must be read.
  const groups = Map.groupBy(sinceMs.keys(), (apId) => (sinceMs.get(apId) ?? 0) < nowMs - MIN_WINDOW_MS);
  for (const [isRare, apIds] of groups) {
    const fromMs = isRare ? oldestMs : nowMs - MIN_WINDOW_MS;
    const stored = await store.latest(apIds, { fromMs, toMs }, MAX_SERIES + 1);
    if (stored.length > MAX_SERIES) throw tooMany();
    for (const point of stored) add(point, true);
  }
  return latest.values();
}

const tooMany = (): Invalid => {
  const msg = `Value error, the selector must not select more than ${MAX_SERIES.toLocaleString("en-US")} series`;
  return new Invalid([{ loc: ["selector"], msg, type: "too_many_series" }], "query");
};
