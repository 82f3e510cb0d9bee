import type { ReplayedAlert } from "./replay.ts";

/** Derives the alerts about a group from those of its members. */

export interface GroupShare {
  /** Number of members, including those without alerts. */
  size: number;
  /** The group's alert fires if the condition holds for at least this share of the members. */
  percent: number;
}

/** Returns the alerts of a group. Their values are the share of the firing members, in percent. */
export function groupAlerts(members: readonly ReplayedAlert[], { size, percent }: GroupShare): ReplayedAlert[] {
  const changes = new Map<number, number>();
  const change = (atMs: number, by: number) => changes.set(atMs, (changes.get(atMs) ?? 0) + by);
  for (const { firedMs, resolvedMs } of members) {
    change(firedMs, 1);
    if (resolvedMs !== null) change(resolvedMs, -1);
  }
  const alerts: ReplayedAlert[] = [];
  let [firing, current]: [number, ReplayedAlert | undefined] = [0, undefined];
  for (const [atMs, by] of [...changes].toSorted(([a], [b]) => a - b)) {
    firing += by;
    const isShare = firing > 0 && firing * 100 >= percent * size;
    if (isShare && current === undefined) {
      current = { firedMs: atMs, resolvedMs: null, value: (firing * 100) / size };
      alerts.push(current);
    } else if (!isShare && current !== undefined) {
      current.resolvedMs = atMs;
      current = undefined;
    }
  }
  return alerts;
}
