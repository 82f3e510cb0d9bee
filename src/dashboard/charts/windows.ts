/** The period that the charts show, and how often they update. */
export interface ChartWindow {
  /** The value of the `window` parameter in API requests and in the page's address. */
  id: string;
  label: string;
  ms: number;
  intervalMs: number;
  /**
   * How often all points are loaded instead of new ones: an access point that was offline sends its stored samples late. Long windows
   * show means over minutes, which only the service can compute, so they reload every time.
   */
  reloadIntervalMs: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const SHORTEST: ChartWindow = {
  id: "5m",
  label: "5 min",
  ms: 5 * MINUTE_MS,
  intervalMs: 1_000,
  reloadIntervalMs: MINUTE_MS,
};

export const WINDOWS: readonly ChartWindow[] = [
  SHORTEST,
  { id: "15m", label: "15 min", ms: 15 * MINUTE_MS, intervalMs: 1_000, reloadIntervalMs: MINUTE_MS },
  { id: "1h", label: "1 h", ms: HOUR_MS, intervalMs: 5_000, reloadIntervalMs: 5 * MINUTE_MS },
  { id: "6h", label: "6 h", ms: 6 * HOUR_MS, intervalMs: 15_000, reloadIntervalMs: 10 * MINUTE_MS },
  { id: "24h", label: "24 h", ms: DAY_MS, intervalMs: MINUTE_MS, reloadIntervalMs: 0 },
  { id: "7d", label: "7 d", ms: 7 * DAY_MS, intervalMs: MINUTE_MS, reloadIntervalMs: 0 },
  { id: "30d", label: "30 d", ms: 30 * DAY_MS, intervalMs: MINUTE_MS, reloadIntervalMs: 0 },
];

/** Returns the window with this id, or the shortest one. */
export const windowOf = (id: string | null): ChartWindow => WINDOWS.find((window) => window.id === id) ?? SHORTEST;
