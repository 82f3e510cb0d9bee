/** A period in two form fields: the browser's local time, to the second. */
export interface Period {
  from: string;
  to: string;
}

const MINUTE_MS = 60_000;

export const PRESETS = [
  { text: "Last 5 minutes", fromMs: -5 * MINUTE_MS, toMs: 0 },
  { text: "Last hour", fromMs: -60 * MINUTE_MS, toMs: 0 },
  { text: "Last day", fromMs: -24 * 60 * MINUTE_MS, toMs: 0 },
  { text: "Next 5 minutes", fromMs: 0, toMs: 5 * MINUTE_MS },
] as const;
export type Preset = (typeof PRESETS)[number];

export const LAST_HOUR = PRESETS[1];

export const periodOf = ({ fromMs, toMs }: Preset, nowMs: number): Period => ({
  from: fieldOf(nowMs + fromMs),
  to: fieldOf(nowMs + toMs),
});

/** Returns a time in the format of a `datetime-local` field. */
function fieldOf(timeMs: number): string {
  const offsetMs = new Date(timeMs).getTimezoneOffset() * MINUTE_MS;
  return new Date(timeMs - offsetMs).toISOString().slice(0, 19);
}

/** Converts a field's local time to the UTC time that the service expects. */
export const instantOf = (field: string): string => new Date(field).toISOString();
