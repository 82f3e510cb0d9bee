/** A duration in a form: a number as typed, and its unit. */
export interface Duration {
  amount: string;
  unit: Unit;
}

export const UNITS = [
  ["s", "seconds", 1],
  ["min", "minutes", 60],
  ["h", "hours", 3_600],
  ["d", "days", 86_400],
] as const;
export type Unit = (typeof UNITS)[number][0];

export const PRESETS: readonly (readonly [text: string, duration: Duration])[] = [
  ["10 minutes", { amount: "10", unit: "min" }],
  ["1 hour", { amount: "1", unit: "h" }],
  ["1 day", { amount: "1", unit: "d" }],
];
export const TEN_MINUTES: Duration = { amount: "10", unit: "min" };

const MAX_SECONDS = 31_536_000;
const secondsPer = (unit: Unit): number => UNITS.find(([name]) => name === unit)?.[2] ?? 1;

export const secondsOf = ({ amount, unit }: Duration): number => Math.round(Number(amount) * secondsPer(unit));

/** Returns the largest amount that the service accepts: one year. */
export const maxAmount = (unit: Unit): number => MAX_SECONDS / secondsPer(unit);

/** Returns a number of seconds in the largest unit that fits. */
export function durationOf(seconds: number): Duration {
  const [unit, , size] = UNITS.findLast(([, , size]) => seconds >= size && seconds % size === 0) ?? UNITS[0];
  return { amount: String(seconds / size), unit };
}

/** Returns a duration in its two largest units: "1 h 30 min". */
export function durationText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor((seconds % 86_400) / 3_600), "h"],
    [Math.floor((seconds % 3_600) / 60), "min"],
    [Math.floor(seconds % 60), "s"],
  ] as const;
  const shown = parts.filter(([n]) => n > 0).slice(0, 2);
  return shown.length === 0 ? "0 s" : shown.map(([n, unit]) => `${n} ${unit}`).join(" ");
}
