import { type AccessPointSpec, type Sample, TECHNOLOGIES } from "../../../src/emulator/models/access-point.ts";
import { createSite, type Site, type SiteStep, stepSite } from "../../../src/emulator/models/site.ts";

export const HOUR_MS = 3_600_000;
export const MIDNIGHT_MS = Date.UTC(2026, 2, 20);

export const oneOfEach = (numDevices = 40): AccessPointSpec[] =>
  TECHNOLOGIES.map((technology) => ({ apId: technology, technology, numDevices }));
export const siteOf = (accessPoints: AccessPointSpec[], seed = 1): Site =>
  createSite({ longitudeDeg: 0, accessPoints }, seed);

/** Steps a site from `fromMs` on and returns all steps. */
export function run(site: Site, { fromMs = MIDNIGHT_MS, stepMs = 1_000, steps = 60 } = {}): SiteStep[] {
  const all: SiteStep[] = [];
  for (let step = 0, now = site; step < steps; step += 1) {
    const next = stepSite(now, fromMs + step * stepMs);
    all.push(next);
    now = next.site;
  }
  return all;
}

export function sampleOf({ samples }: SiteStep, apId: string): Sample {
  const found = samples.find((each) => each.apId === apId);
  if (found === undefined) throw new Error(`no sample of ${apId}`);
  return found.sample;
}
export const series = (steps: SiteStep[], apId: string, field: string): number[] =>
  steps.map((step) => sampleOf(step, apId)[field] ?? Number.NaN);
export const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
export const usersOf = ({ samples }: SiteStep): number =>
  samples.reduce((sum, { sample }) => sum + (sample.users ?? Number.NaN), 0);

export function correlation(left: number[], right: number[]): number {
  const [meanLeft, meanRight] = [mean(left), mean(right)];
  const deviations = left.map((value, index) => [value - meanLeft, (right[index] ?? Number.NaN) - meanRight] as const);
  const sum = (of: (pair: readonly [number, number]) => number): number =>
    deviations.reduce((total, pair) => total + of(pair), 0);
  return sum(([x, y]) => x * y) / Math.sqrt(sum(([x]) => x * x) * sum(([, y]) => y * y));
}

/** Fields with the same meaning but different names. */
export const NAMES = {
  "5G": { utilisation: "RRU.PrbTotDl", delay: "DRB.AirIfDelayDl", associated: "RRC.ConnMax" },
  WiFi: { utilisation: "channel_utilisation_pct", delay: "latency_ms", associated: "associations" },
  LiFi: { utilisation: "load", delay: "latency_ms", associated: "users" },
} as const;
