import uPlot from "uplot";
import { colour } from "../app/theme.ts";
import { tickText } from "../lib/format.ts";
import { TICK_STEPS_MS, tickTimeTexts } from "./time-axis.ts";

export interface ChartColours {
  line: string;
  area: string;
  text: string;
  grid: string;
}

/** Looks up a chart's colours. Keep the result: a lookup takes longer than drawing the chart. */
export function chartColours(name: string): ChartColours {
  const line = colour(name);
  return { line, area: line.replace(/^rgb\((.+)\)$/, "rgba($1, 0.1)"), text: colour("soft"), grid: colour("line") };
}

export interface ChartSettings {
  element: HTMLElement;
  /** The known range of the values. */
  bounds: readonly [number, number] | undefined;
  /** Charts of one group show the cursor at the same time. */
  group: string;
  /** The colours of each line. */
  colours(): readonly ChartColours[];
  /** The indexes of points without neighbours, which need a dot, for each line. */
  isolated(): readonly (readonly number[])[];
  /** Receives undefined when the pointer leaves the chart. */
  onPoint(timeMs: number | undefined): void;
}

/** Returns uPlot's options for lines over time. Only a single line has an area below it. */
export function chartOptions({ element, bounds, group, colours, isolated, onPoint }: ChartSettings): uPlot.Options {
  const count = colours().length;
  const axis: uPlot.Axis = {
    stroke: () => colours()[0]?.text ?? "",
    font: `11px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: () => colours()[0]?.grid ?? "", width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    ms: 1,
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: group, scales: ["x", null] },
    },
    scales: {
      x: { time: true, auto: false },
      y: { range: (_, min, max) => rangeOf(min, max, bounds) },
    },
    axes: [
      {
        ...axis,
        size: 22,
        gap: 6,
        space: 46,
        incrs: TICK_STEPS_MS,
        values: (_, splits, _axis, _space, step) => tickTimeTexts(splits, step),
      },
      { ...axis, size: 46, gap: 4, space: 28, values: (_, splits) => splits.map(tickText) },
    ],
    series: [
      {},
      ...Array.from({ length: count }, (_, i): uPlot.Series => {
        const line = () => colours()[i]?.line ?? "";
        const filter: uPlot.Series.Points.Filter = (_, _series, show) => (show ? null : [...(isolated()[i] ?? [])]);
        return {
          stroke: line,
          ...(count === 1 && { fill: () => colours()[i]?.area ?? "" }),
          width: 1.5,
          points: { size: 4, fill: line, filter },
        };
      }),
    ],
    hooks: {
      setCursor: [
        ({ cursor, posToVal }) => {
          // uPlot calls this for every chart of the group. Only the one under the pointer has an event.
          if (cursor.event == null) return;
          const { left = -1 } = cursor;
          onPoint(left < 0 ? undefined : posToVal(left, "x"));
        },
      ],
    },
  };
}

/** Returns the range of the y axis: the values with a margin, or 0 to 1 if there are none or all are 0. */
function rangeOf(min: number | null, max: number | null, bounds: ChartSettings["bounds"]): uPlot.Range.MinMax {
  if (bounds !== undefined) return [Math.min(bounds[0], min ?? bounds[0]), Math.max(bounds[1], max ?? bounds[1])];
  if (min === null || max === null || (min === 0 && max === 0)) return [0, 1];
  return uPlot.rangeNum(min, max, 0.1, true);
}
