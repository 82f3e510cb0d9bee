import { own } from "../lib/own.ts";
import { getPreference, setPreference } from "../lib/preferences.ts";

/** Which metrics somebody wants to see. */

export const MAX_SHOWN = 8;

const OF_ALL = ["load", "quality", "users"];
/** The most telling ones of each technology. */
const OF_TECHNOLOGY: Record<string, readonly string[]> = {
  "5G": ["throughput_mbps", "sinr_db", "DRB.AirIfDelayDl"],
  WiFi: ["throughput_mbps", "channel_utilisation_pct", "snr_db"],
  LiFi: ["throughput_mbps", "snr_db", "blockage"],
};
/** Of an access point that reports none of these: so many of what it does report. */
const FEW = 4;

/** What the address asks for; else what was chosen last for the technology; else what tells most. */
export function chosenMetrics(asked: string | null, type: string | null, known: readonly string[]): string[] {
  const chosen = asked ?? getPreference(keyOf(type));
  if (chosen !== null) return [...new Set(chosen.split(",").filter(Boolean))].slice(0, MAX_SHOWN);
  const telling = [...OF_ALL, ...(own(OF_TECHNOLOGY, type ?? "") ?? [])].filter((metric) => known.includes(metric));
  return telling.length > 0 ? telling : known.slice(0, FEW);
}

export function rememberChoice(type: string | null, metrics: readonly string[]): void {
  setPreference(keyOf(type), metrics.join());
}

const keyOf = (type: string | null): string => `metrics:${type ?? ""}`;
