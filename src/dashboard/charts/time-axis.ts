/** Marks on the axis of time, in the person's own time and language. */

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const second = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** No finer than the steps between the marks; where a day begins, its date. */
export function markTexts(timesMs: readonly number[], stepMs: number): string[] {
  return timesMs.map((timeMs) => {
    const isMidnight = minute.format(timeMs) === MIDNIGHT;
    if (stepMs >= DAY_MS || (isMidnight && stepMs >= MINUTE_MS)) return day.format(timeMs);
    return (stepMs >= MINUTE_MS ? minute : second).format(timeMs);
  });
}

const MIDNIGHT = minute.format(new Date(2020, 0, 1));
