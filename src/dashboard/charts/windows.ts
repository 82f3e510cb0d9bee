/** How far back charts look, and how often they ask. */
export interface ChartWindow {
  /** As the service, and the page's address, has it. */
  id: string;
  label: string;
  ms: number;
  everyMs: number;
  /**
   * How often all of it is asked for rather than what is new: an access point that was cut off hands in late what it has kept. The
   * long ones are means over minutes, which only the service can go on with.
   */
  wholeEveryMs: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const SHORTEST: ChartWindow = {
  id: "5m",
  label: "5 min",
  ms: 5 * MINUTE_MS,
  everyMs: 1_000,
  wholeEveryMs: MINUTE_MS,
};

export const WINDOWS: readonly ChartWindow[] = [
  SHORTEST,
  { id: "15m", label: "15 min", ms: 15 * MINUTE_MS, everyMs: 1_000, wholeEveryMs: MINUTE_MS },
  { id: "1h", label: "1 h", ms: HOUR_MS, everyMs: 5_000, wholeEveryMs: 5 * MINUTE_MS },
  { id: "6h", label: "6 h", ms: 6 * HOUR_MS, everyMs: 15_000, wholeEveryMs: 10 * MINUTE_MS },
  { id: "24h", label: "24 h", ms: DAY_MS, everyMs: MINUTE_MS, wholeEveryMs: 0 },
  { id: "7d", label: "7 d", ms: 7 * DAY_MS, everyMs: MINUTE_MS, wholeEveryMs: 0 },
  { id: "30d", label: "30 d", ms: 30 * DAY_MS, everyMs: MINUTE_MS, wholeEveryMs: 0 },
];

export const windowOf = (id: string | null): ChartWindow => WINDOWS.find((window) => window.id === id) ?? SHORTEST;
