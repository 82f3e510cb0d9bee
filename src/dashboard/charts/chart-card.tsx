import type { Signal } from "@preact/signals";
import { useCallback, useMemo } from "preact/hooks";
import { durationText } from "../lib/duration.ts";
import { numberText, own } from "../lib/format.ts";
import { Chart } from "./chart.tsx";
import { withGaps } from "./gaps.ts";
import { indexFrom, type MetricSeries } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

/** The full ranges of shares. A range fitted to the values would exaggerate small changes. */
export const BOUNDS: Record<string, readonly [number, number]> = { load: [0, 1], quality: [0, 1] };

export interface ChartCardProps {
  metric: string;
  label: string;
  series: MetricSeries;
  /** Whether an empty series means that there are no points, rather than none yet. */
  isLoaded: boolean;
  window: ChartWindow;
  untilMs: number;
  colourName: string;
  group: string;
  /** The time under the pointer, in any chart of the group. */
  pointedMs: Signal<number | undefined>;
  isLarge: boolean;
  onLarge(): void;
}

/** A metric's chart, with its latest, smallest and largest value as text. */
export function ChartCard(props: ChartCardProps) {
  const { metric, label, series, isLoaded, window, untilMs, colourName, group, pointedMs, isLarge, onLarge } = props;
  const { title, unit } = labelParts(label);
  // The store appends to the same arrays: `untilMs` changes whenever there may be new points.
  const { times, lines } = useMemo(() => {
    const { times, values, isolated } = withGaps(series);
    return { times, lines: [{ values, isolated, colourName }] };
  }, [series, untilMs, colourName]);
  const { low, high } = useMemo(() => extremesOf(series.values), [series, untilMs]);
  // A new function would make the chart create its uPlot instance anew.
  const onPoint = useCallback(
    (timeMs: number | undefined) => {
      pointedMs.value = timeMs;
    },
    [pointedMs],
  );
  const latest = series.values.at(-1);
  const summary =
    latest === undefined
      ? `${title}: no data in the last ${window.label}`
      : `${title}: latest ${numberText(latest)} ${unit}, between ${numberText(low)} and ${numberText(high)} in the last ${window.label}`;
  return (
    <article class="card chart-card" data-large={isLarge}>
      <header>
        <h3>{title}</h3>
        <button
          type="button"
          class="quiet small"
          aria-pressed={isLarge}
          aria-label={`Enlarge ${title}`}
          title={isLarge ? "Smaller" : "Larger"}
          onClick={onLarge}
        >
          {isLarge ? "↙" : "↗"}
        </button>
      </header>
      <p class="reading">
        <Reading series={series} pointedMs={pointedMs} /> <span class="soft">{unit}</span>
      </p>
      <Chart
        {...{ times, lines }}
        fromMs={untilMs - window.ms}
        untilMs={untilMs}
        bounds={own(BOUNDS, metric)}
        label={summary}
        group={group}
        onPoint={onPoint}
      />
      <p class="chart-foot">
        {latest !== undefined && `min ${numberText(low)} · max ${numberText(high)}`}
        {latest === undefined && (isLoaded ? "No data in this period" : "Loading…")}
        {series.bucketMs !== undefined && <span>mean over {durationText(Math.ceil(series.bucketMs / 1_000))}</span>}
      </p>
    </article>
  );
}

/** Shows the latest value, or the one under the pointer. A component of its own: it renders at every move of the pointer. */
function Reading({ series, pointedMs }: Pick<ChartCardProps, "series" | "pointedMs">) {
  const timeMs = pointedMs.value;
  return <strong>{numberText(timeMs === undefined ? series.values.at(-1) : valueAt(series, timeMs))}</strong>;
}

/** Returns the value of the point closest to a time. */
function valueAt({ times, values }: MetricSeries, timeMs: number): number | undefined {
  const after = indexFrom(times, timeMs);
  const beforeMs = times[after - 1] ?? Number.NEGATIVE_INFINITY;
  const afterMs = times[after] ?? Number.POSITIVE_INFINITY;
  return values[timeMs - beforeMs < afterMs - timeMs ? after - 1 : after];
}

function extremesOf(values: readonly number[]): { low: number | undefined; high: number | undefined } {
  let low: number | undefined;
  let high: number | undefined;
  for (const value of values) {
    if (low === undefined || value < low) low = value;
    if (high === undefined || value > high) high = value;
  }
  return { low, high };
}

/** Splits a label with its unit in brackets: "Throughput (Mbit/s)". */
function labelParts(label: string): { title: string; unit: string } {
  const [, title = label, unit = ""] = /^(.+) \(([^()]+)\)$/.exec(label) ?? [];
  return { title, unit };
}
