import type { Backtest } from "../../../../schemas/alerts/backtest.ts";
import { countOf } from "../../../lib/format.ts";

/** The result of a backtest as parts of a chart. */

type PastAlert = Backtest["alerts"][number];

export interface FiredPeriod {
  fromMs: number;
  untilMs: number;
}

/** Returns what an alert is about. */
export const subjectOf = ({ ap_id, group }: Pick<PastAlert, "ap_id" | "group">): string => ap_id ?? group ?? "";

/** Returns the periods in which alerts fired: of one access point, or of all. */
export function firedPeriods({ alerts, to }: Pick<Backtest, "alerts" | "to">, apId?: string): FiredPeriod[] {
  return alerts
    .filter((alert) => apId === undefined || alert.ap_id === apId)
    .map(({ fired_at, resolved_at }) => ({ fromMs: Date.parse(fired_at), untilMs: Date.parse(resolved_at ?? to) }));
}

/** Returns how many alerts fire at the same time, as a line with steps. */
export function firingCounts(
  periods: readonly FiredPeriod[],
  fromMs: number,
  untilMs: number,
): { times: number[]; values: number[] } {
  const changes = new Map<number, number>();
  const add = (atMs: number, by: number) => changes.set(atMs, (changes.get(atMs) ?? 0) + by);
  for (const period of periods) {
    add(period.fromMs, 1);
    if (period.untilMs < untilMs) add(period.untilMs, -1);
  }
  const line = { times: [fromMs], values: [0] };
  let count = 0;
  for (const [atMs, by] of [...changes].sort(([one], [other]) => one - other)) {
    if (by === 0) continue;
    // Two points at nearly the same time make a step.
    if (atMs > (line.times.at(-1) ?? fromMs) + 1) {
      line.times.push(atMs - 1);
      line.values.push(count);
    }
    count += by;
    line.times.push(Math.max(atMs, (line.times.at(-1) ?? fromMs) + 1));
    line.values.push(count);
  }
  if ((line.times.at(-1) ?? fromMs) < untilMs) {
    line.times.push(untilMs);
    line.values.push(count);
  }
  return line;
}

/** Returns the access points or groups with alerts, those with the most first. */
export function subjects({ alerts }: Pick<Backtest, "alerts">): { name: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const alert of alerts) counts.set(subjectOf(alert), (counts.get(subjectOf(alert)) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1));
}

/** Describes the result in one sentence. */
export function summaryText(result: Pick<Backtest, "agents" | "total" | "alerts" | "flaps" | "truncated">): string {
  const { agents, total, flaps, truncated } = result;
  if (agents === 0) return "The rule watches no access points.";
  const watched = countOf(agents, "access point");
  if (total === 0) return `No alerts on ${watched}.`;
  const found = `${truncated ? "More than " : ""}${countOf(total, "alert")} on ${watched}`;
  const repeated =
    flaps.total === 0
      ? "none fired again within 10 minutes"
      : `${countOf(flaps.total, "flap")} (fired again within 10 minutes)`;
  return `${found}; ${repeated}.`;
}
