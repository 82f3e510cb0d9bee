import uPlot from "uplot";
import { colour } from "../app/theme.ts";
import { tickText } from "./figures.ts";
import { MARK_STEPS_MS, markTexts } from "./time-axis.ts";

export interface ChartColours {
  line: string;
  area: string;
  text: string;
  grid: string;
}

/** To be kept: asking the style sheet at every drawing would cost more than the drawing. */
export function chartColours(name: string): ChartColours {
  const line = colour(name);
  return { line, area: line.replace(/^rgb\((.+)\)$/, "rgba($1, 0.1)"), text: colour("soft"), grid: colour("line") };
}

export interface ChartLook {
  element: HTMLElement;
  /** For values that are known to lie between these. */
  bounds: readonly [number, number] | undefined;
  /** Charts of one group show the same moment when one of them is pointed at. */
  group: string;
  colours(): ChartColours;
  /** Points that no line would show. */
  lonely(): readonly number[];
  /** Nothing where the pointer has left. */
  onPoint(timeMs: number | undefined): void;
}

/** How uPlot shall draw one line over time. */
export function chartOptions({ element, bounds, group, colours, lonely, onPoint }: ChartLook): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: () => colours().text,
    font: `11px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: () => colours().grid, width: 1 },
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
        incrs: MARK_STEPS_MS,
        values: (_, splits, _axis, _space, step) => markTexts(splits, step),
      },
      { ...axis, size: 46, gap: 4, space: 28, values: (_, splits) => splits.map(tickText) },
    ],
    series: [
      {},
      {
        stroke: () => colours().line,
        fill: () => colours().area,
        width: 1.5,
        points: { size: 4, fill: () => colours().line, filter: (_, _series, show) => (show ? null : [...lonely()]) },
      },
    ],
    hooks: {
      setCursor: [
        ({ cursor, posToVal }) => {
          // Of the charts of a group, the one under the pointer speaks.
          if (cursor.event == null) return;
          const { left = -1 } = cursor;
          onPoint(left < 0 ? undefined : posToVal(left, "x"));
        },
      ],
    },
  };
}

/** Some air around the values, and something to see where all are the same, or none is there. */
function rangeOf(min: number | null, max: number | null, bounds: ChartLook["bounds"]): uPlot.Range.MinMax {
  if (bounds !== undefined) return [Math.min(bounds[0], min ?? bounds[0]), Math.max(bounds[1], max ?? bounds[1])];
  if (min === null || max === null || (min === 0 && max === 0)) return [0, 1];
  return uPlot.rangeNum(min, max, 0.1, true);
}
