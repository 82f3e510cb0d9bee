import type { Aggregate } from "../../schemas/metrics.ts";
import type { AggregateGroup } from "../api/fleet-shapes.ts";

/** The series of an aggregate as lines of charts. */

/** The style sheet has this many colours for lines. */
export const MAX_LINES = 8;

/** A step longer than this many buckets is a gap. */
const GAP_BUCKETS = 3;

/** The groups of an aggregate over the same times. */
export interface AlignedLines {
  times: readonly number[];
  lines: readonly AlignedLine[];
}

export interface AlignedLine {
  name: string;
  /** Null if the group has no value at the time. */
  values: readonly (number | null)[];
  /** The indexes of values without a neighbour. */
  isolated: readonly number[];
}

/** Returns the largest groups, in the order of their names. */
export function largestGroups({ groups }: Aggregate): AggregateGroup[] {
  const largest = [...groups].sort((one, other) => other.agents - one.agents).slice(0, MAX_LINES);
  return largest.sort((one, other) => collator.compare(groupName(one), groupName(other)));
}

const collator = new Intl.Collator("en", { numeric: true });

/** Returns the values of a group's labels for people. */
export function groupName({ labels }: Pick<AggregateGroup, "labels">): string {
  const values = Object.values(labels);
  return values.length === 0 ? "All" : values.map((value) => value ?? "none").join(", ");
}

/** Returns the lines of one metric, one for each group. */
export function alignedLines(metric: string, groups: readonly AggregateGroup[], bucketMs: number): AlignedLines {
  const series = groups.map(
    (group) =>
      new Map(
        group.series.find((one) => one.metric === metric)?.points.map(({ ts, value }) => [Date.parse(ts), value]),
      ),
  );
  const times = withBreaks([...new Set(series.flatMap((points) => [...points.keys()]))].sort(ascending), bucketMs);
  const lines = groups.map((group, i) => {
    const values = times.map((timeMs) => series[i]?.get(timeMs) ?? null);
    return { name: groupName(group), values, isolated: isolatedIn(values) };
  });
  return { times, lines };
}

const ascending = (one: number, other: number): number => one - other;

/** Adds a time inside each gap. No group has a value then, so that all lines are broken there. */
function withBreaks(times: readonly number[], bucketMs: number): number[] {
  return times.flatMap((timeMs, i) => {
    const beforeMs = times[i - 1];
    const isGap = beforeMs !== undefined && timeMs - beforeMs > GAP_BUCKETS * bucketMs;
    return isGap ? [(beforeMs + timeMs) / 2, timeMs] : [timeMs];
  });
}

const isolatedIn = (values: readonly (number | null)[]): number[] =>
  values.flatMap((value, i) =>
    value !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : [],
  );

/** Returns the last value of a line. */
export const latestOf = (values: readonly (number | null)[]): number | undefined =>
  values.findLast((value) => value !== null) ?? undefined;
