import { locale } from "../lib/locale.ts";

/** The texts of the time axis, in the user's time zone and language. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The possible distances of ticks. uPlot uses the shortest one that leaves room for the texts. */
export const TICK_STEPS_MS: number[] = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 4, 7, 10].map((days) => days * DAY_MS),
];

const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const minute = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const second = new Intl.DateTimeFormat(locale, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** Returns the texts of ticks: the time of day, or the date at midnight. */
export function tickTimeTexts(timesMs: readonly number[], stepMs: number): string[] {
  return timesMs.map((timeMs) => {
    const text = minute.format(timeMs);
    return stepMs >= DAY_MS || text === MIDNIGHT ? day.format(timeMs) : text;
  });
}

const MIDNIGHT = minute.format(new Date(2020, 0, 1));

/** Returns a time within a window of this length: with the date if the window is longer than a day. */
export const momentText = (timeMs: number, windowMs: number): string =>
  windowMs > DAY_MS ? `${day.format(timeMs)}, ${minute.format(timeMs)}` : second.format(timeMs);
