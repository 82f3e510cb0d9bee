import { useMemo } from "preact/hooks";
import { durationText } from "../components/time.tsx";
import { type Observable, useObserved } from "../lib/observable.ts";
import { own } from "../lib/own.ts";
import { Chart } from "./chart.tsx";
import { figureText, labelParts } from "./figures.ts";
import { withGaps } from "./gaps.ts";
import { indexFrom, type Track } from "./series-store.ts";
import type { ChartWindow } from "./windows.ts";

/** Shares by their meaning: a chart of one that hardly changes must not look like a storm. */
const BOUNDS: Record<string, readonly [number, number]> = { load: [0, 1], quality: [0, 1] };

export interface ChartCardProps {
  metric: string;
  label: string;
  track: Track;
  /** Whether there is nothing rather than nothing yet. */
  isLoaded: boolean;
  window: ChartWindow;
  untilMs: number;
  colourName: string;
  group: string;
  /** The moment that is pointed at, in whichever chart. */
  pointed: Observable<number | undefined>;
  isLarge: boolean;
  onLarge(): void;
}

/** A metric: its chart, and the figures that say the same without it. */
export function ChartCard(props: ChartCardProps) {
  const { metric, label, track, isLoaded, window, untilMs, colourName, group, pointed, isLarge, onLarge } = props;
  const { title, unit } = labelParts(label);
  // The track is one that grows: when this is drawn, something may have come.
  const line = useMemo(() => withGaps(track), [track, untilMs]);
  const { low, high } = useMemo(() => extremesOf(track.values), [track, untilMs]);
  const latest = track.values.at(-1);
  const words =
    latest === undefined
      ? `${title}: nothing in the last ${window.label}`
      : `${title}: latest ${figureText(latest)} ${unit}, between ${figureText(low)} and ${figureText(high)} in the last ${window.label}`;
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
        <Reading track={track} pointed={pointed} /> <span class="soft">{unit}</span>
      </p>
      <Chart
        line={line}
        fromMs={untilMs - window.ms}
        untilMs={untilMs}
        colourName={colourName}
        bounds={own(BOUNDS, metric)}
        label={words}
        group={group}
        onPoint={pointed.set}
      />
      <p class="chart-foot">
        {latest !== undefined && `min ${figureText(low)} · max ${figureText(high)}`}
        {latest === undefined && (isLoaded ? "Nothing in this window" : "Loading…")}
        {track.bucketMs !== undefined && <span>means over {durationText(Math.ceil(track.bucketMs / 1_000))}</span>}
      </p>
    </article>
  );
}

/** The latest value, or the one at the moment that is pointed at. By itself: it changes with every move of the pointer. */
function Reading({ track, pointed }: Pick<ChartCardProps, "track" | "pointed">) {
  const timeMs = useObserved(pointed);
  return <strong>{figureText(timeMs === undefined ? track.values.at(-1) : valueAt(track, timeMs))}</strong>;
}

/** Of the point that is nearest. */
function valueAt({ times, values }: Track, timeMs: number): number | undefined {
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
