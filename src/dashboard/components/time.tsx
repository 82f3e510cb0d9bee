import { useServiceNowMs } from "../api/clock.ts";
import { locale } from "../lib/locale.ts";

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

export const timeText = (ts: string): string => absolute.format(new Date(ts));

function agoText(ts: string, nowMs: number): string {
  const seconds = Math.round((Date.parse(ts) - nowMs) / 1_000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  // The clock of an access point may be ahead: never show a time in the future.
  return relative.format(Math.min(0, Math.round(seconds / size)), unit);
}

/** Shows how long ago a time was, and keeps it up to date. The tooltip shows the exact time. */
export function Ago({ ts }: { ts: string | null }) {
  // After a minute no seconds are shown, so that a long list renders less often.
  const nowMs = useServiceNowMs((nowMs) => (ts !== null && nowMs - Date.parse(ts) > 60_000 ? 30_000 : 1_000));
  if (ts === null) return <span>never</span>;
  return (
    <time dateTime={ts} title={timeText(ts)}>
      {agoText(ts, nowMs)}
    </time>
  );
}
