import type { Signal } from "@preact/signals";
import { useCallback, useMemo } from "preact/hooks";
import { numberText } from "../lib/format.ts";
import { type AlignedLines, latestOf } from "./aggregate-lines.ts";
import { Chart } from "./chart.tsx";
import { indexFrom } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

export interface LinesCardProps {
  title: string;
  data: AlignedLines;
  isLoaded: boolean;
  window: ChartWindow;
  untilMs: number;
  bounds: readonly [number, number] | undefined;
  group: string;
  /** The time under the pointer, in any chart of the group. */
  pointedMs: Signal<number | undefined>;
  /** The number of the first line's colour: a single line has another colour in each chart. */
  firstColour: number;
}

/** A chart with one line for each group of access points. Its legend shows the latest values, or those under the pointer. */
export function LinesCard(props: LinesCardProps) {
  const { title, data, isLoaded, window, untilMs, bounds, group, pointedMs, firstColour } = props;
  const colourOf = (i: number): string => `series-${firstColour + i}`;
  const lines = useMemo(
    () => data.lines.map(({ values, isolated }, i) => ({ values, isolated, colourName: colourOf(i) })),
    [data, firstColour],
  );
  // A new function would make the chart create its uPlot instance anew.
  const onPoint = useCallback(
    (timeMs: number | undefined) => {
      pointedMs.value = timeMs;
    },
    [pointedMs],
  );
  const isSingle = data.lines.length === 1;
  const hasValues = data.times.length > 0;
  const summary = hasValues
    ? `${title}: latest ${data.lines.map(({ name, values }) => `${isSingle ? "" : `${name} `}${numberText(latestOf(values))}`).join(", ")}`
    : `${title}: no data in the last ${window.label}`;
  return (
    <article class="card chart-card">
      <h3>{title}</h3>
      <ul class="line-legend" data-single={isSingle}>
        {data.lines.map(({ name, values }, i) => (
          <li key={name}>
            {!isSingle && <span class={`line-mark ${colourOf(i)}`} aria-hidden="true" />}
            {!isSingle && <span class="line-name">{name}</span>}
            <LineReading times={data.times} values={values} pointedMs={pointedMs} />
          </li>
        ))}
      </ul>
      <Chart
        times={data.times}
        lines={lines}
        fromMs={untilMs - window.ms}
        untilMs={untilMs}
        label={summary}
        {...{ bounds, group, onPoint }}
      />
      <p class="chart-foot">{!hasValues && (isLoaded ? "No data in this period" : "Loading…")}</p>
    </article>
  );
}

/** A component of its own: it renders at every move of the pointer. */
function LineReading({
  times,
  values,
  pointedMs,
}: {
  times: readonly number[];
  values: readonly (number | null)[];
  pointedMs: Signal<number | undefined>;
}) {
  const timeMs = pointedMs.value;
  return <strong>{numberText(timeMs === undefined ? latestOf(values) : valueAt(times, values, timeMs))}</strong>;
}

function valueAt(times: readonly number[], values: readonly (number | null)[], timeMs: number): number | undefined {
  const after = indexFrom(times, timeMs);
  const beforeMs = times[after - 1] ?? Number.NEGATIVE_INFINITY;
  const afterMs = times[after] ?? Number.POSITIVE_INFINITY;
  return values[timeMs - beforeMs < afterMs - timeMs ? after - 1 : after] ?? undefined;
}
