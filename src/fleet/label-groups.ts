import type { ScopedAgent } from "../auth/agent-scope.ts";

/** Agents with the same values of some labels. */
export interface LabelGroup {
  /** A value for each key. Null: the agents do not have the label. */
  labels: Record<string, string | null>;
  /** Number of agents. */
  agents: number;
}

export interface LabelGroups {
  /** Sorted by the values of the labels. */
  groups: LabelGroup[];
  /** Index of each agent's group. */
  groupOf: ReadonlyMap<string, number>;
  /** Index of the group without any of the labels. It may have no agents. */
  unlabelled: number;
}

/** Divides agents into groups by the values of some labels. */
export function groupByLabels(agents: readonly ScopedAgent[], keys: readonly string[]): LabelGroups {
  const found = new Map<string, { values: (string | null)[]; apIds: string[] }>();
  const groupFor = (values: (string | null)[]) => {
    const name = JSON.stringify(values);
    const group = found.get(name) ?? { values, apIds: [] };
    found.set(name, group);
    return group;
  };
  const unlabelled = groupFor(keys.map(() => null));
  for (const { apId, labels } of agents) groupFor(keys.map((key) => labels[key] ?? null)).apIds.push(apId);
  const sorted = [...found.values()].toSorted(byValues);
  return {
    groups: sorted.map(({ values, apIds }) => ({
      labels: Object.fromEntries(keys.map((key, i) => [key, values[i] ?? null])),
      agents: apIds.length,
    })),
    groupOf: new Map(sorted.flatMap(({ apIds }, i) => apIds.map((apId) => [apId, i] as const))),
    unlabelled: sorted.indexOf(unlabelled),
  };
}

/** Null sorts after all values. */
function byValues({ values: a }: { values: (string | null)[] }, { values: b }: { values: (string | null)[] }): number {
  for (const [i, value] of a.entries()) {
    const other = b[i] ?? null;
    if (value === other) continue;
    if (value === null || other === null) return value === null ? 1 : -1;
    return value < other ? -1 : 1;
  }
  return 0;
}
