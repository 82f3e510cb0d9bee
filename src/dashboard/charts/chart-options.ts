import uPlot from "uplot";
import { colour } from "../app/theme.ts";
import { tickTexts } from "../lib/format.ts";
import { TICK_STEPS_MS, tickTimeTexts } from "./time-axis.ts";

export interface ChartColours {
  line: string;
  area: string;
  text: string;
  grid: string;
  mark: string;
  shade: string;
}

/** What a chart shows in addition to its lines. */
export interface ChartMarks {
  /** Shaded periods. */
  periods: readonly { fromMs: number; untilMs: number }[];
  /** Values of dashed lines. They are always inside the chart. */
  levels: readonly number[];
}

export const NO_MARKS: ChartMarks = { periods: [], levels: [] };

/** Looks up a chart's colours. Keep the result: a lookup takes longer than drawing the chart. */
export function chartColours(name: string): ChartColours {
  const [line, mark] = [colour(name), colour("bad")];
  return {
    line,
    area: translucent(line, 0.1),
    text: colour("soft"),
    grid: colour("line"),
    mark,
    shade: translucent(mark, 0.18),
  };
}

const translucent = (rgb: string, opacity: number): string => rgb.replace(/^rgb\((.+)\)$/, `rgba($1, ${opacity})`);

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
  marks(): ChartMarks;
  /** Receives undefined when the pointer leaves the chart. */
  onPoint(timeMs: number | undefined): void;
}

/** Returns uPlot's options for lines over time. Only a single line has an area below it. */
export function chartOptions({
  element,
  bounds,
  group,
  colours,
  isolated,
  marks,
  onPoint,
}: ChartSettings): uPlot.Options {
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
      y: { range: (_, min, max) => rangeOf(min, max, bounds, marks().levels) },
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
      { ...axis, size: 54, gap: 4, space: 28, values: (_, splits) => tickTexts(splits) },
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
      drawClear: [(plot) => drawMarks(plot, marks(), colours()[0])],
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

/** Draws the marks behind the lines. */
function drawMarks(plot: uPlot, { periods, levels }: ChartMarks, colours: ChartColours | undefined): void {
  const { ctx, bbox } = plot;
  if (colours === undefined || (periods.length === 0 && levels.length === 0)) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { fromMs, untilMs } of periods) {
    const left = plot.valToPos(fromMs, "x", true);
    // A short period is still visible.
    const width = Math.max(2 * devicePixelRatio, plot.valToPos(untilMs, "x", true) - left);
    ctx.fillStyle = colours.shade;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.fillStyle = colours.mark;
    ctx.fillRect(left, bbox.top, width, 3 * devicePixelRatio);
  }
  ctx.strokeStyle = colours.mark;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const level of levels) {
    const top = plot.valToPos(level, "y", true);
    ctx.beginPath();
    ctx.moveTo(bbox.left, top);
    ctx.lineTo(bbox.left + bbox.width, top);
    ctx.stroke();
  }
  ctx.restore();
}

/** Returns the range of the y axis: the values and levels with a margin, or 0 to 1 if there are none or all are 0. */
function rangeOf(
  lowest: number | null,
  highest: number | null,
  bounds: ChartSettings["bounds"],
  levels: readonly number[],
): uPlot.Range.MinMax {
  const ends = [lowest, highest, ...levels].filter((value) => value !== null);
  const [min, max] = [Math.min(...ends), Math.max(...ends)];
  if (bounds !== undefined) return [Math.min(bounds[0], min), Math.max(bounds[1], max)];
  if (ends.length === 0 || (min === 0 && max === 0)) return [0, 1];
  return uPlot.rangeNum(min, max, 0.1, true);
}
