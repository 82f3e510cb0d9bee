import { splitMetricNames } from "../../schemas/metric-list.ts";
import { getPreference, setPreference } from "../lib/browser.ts";
import { own } from "../lib/format.ts";

/** The metrics that the charts of an access point show. */

export const MAX_SHOWN = 8;

const COMMON = ["load", "quality", "users"];
/** The most useful metrics of each technology. */
const BY_TECHNOLOGY: Record<string, readonly string[]> = {
  "5G": ["throughput_mbps", "sinr_db", "DRB.AirIfDelayDl"],
  WiFi: ["throughput_mbps", "channel_utilisation_pct", "snr_db"],
  LiFi: ["throughput_mbps", "snr_db", "blockage"],
};
/** The number of metrics shown for an access point that reports none of these. */
const FALLBACK_COUNT = 4;

/** Returns the metrics in the address, else the user's last choice for the technology, else the most useful ones. */
export function chosenMetrics(requested: string | null, type: string | null, reported: readonly string[]): string[] {
  const chosen = requested ?? getPreference(keyOf(type));
  if (chosen !== null) return [...new Set(splitMetricNames(chosen))].slice(0, MAX_SHOWN);
  const useful = [...COMMON, ...(own(BY_TECHNOLOGY, type ?? "") ?? [])].filter((metric) => reported.includes(metric));
  return useful.length > 0 ? useful : diverse(reported).slice(0, FALLBACK_COUNT);
}

/** Returns the first metric of each family, then the second of each, and so on. `mem.used` and `mem_used` are of the family `mem`. */
function diverse(metrics: readonly string[]): string[] {
  const counts = new Map<string, number>();
  const ranked = metrics.map((metric) => {
    const [family] = metric.split(/[._{]/, 1) as [string];
    const rank = counts.get(family) ?? 0;
    counts.set(family, rank + 1);
    return { metric, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ metric }) => metric);
}

export function saveChosenMetrics(type: string | null, metrics: readonly string[]): void {
  setPreference(keyOf(type), metrics.join());
}

const keyOf = (type: string | null): string => `metrics:${type ?? ""}`;
