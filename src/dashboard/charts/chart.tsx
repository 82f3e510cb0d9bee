import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onColoursChange } from "../app/theme.ts";
import { type ChartMarks, type ChartSettings, chartColours, chartOptions, NO_MARKS } from "./chart-options.ts";

export interface ChartLine {
  /** Null breaks the line. */
  values: readonly (number | null)[];
  /** The indexes of points between two breaks. */
  isolated: readonly number[];
  /** The name of the line's colour in the style sheet. */
  colourName: string;
}

export interface ChartProps extends Pick<ChartSettings, "bounds" | "group" | "onPoint"> {
  /** The times of the values of all lines. */
  times: readonly number[];
  lines: readonly ChartLine[];
  fromMs: number;
  untilMs: number;
  marks?: ChartMarks;
  /** Describes the lines to screen readers. */
  label: string;
}

/** Lines over time, drawn by uPlot. New data update the uPlot instance instead of replacing it. */
export function Chart(props: ChartProps) {
  const { times, lines, fromMs, untilMs, marks = NO_MARKS, bounds, label, group, onPoint } = props;
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const latestLines = useRef(lines);
  latestLines.current = lines;
  const latestMarks = useRef(marks);
  latestMarks.current = marks;
  const colourNames = lines.map(({ colourName }) => colourName).join();
  const settings = [colourNames, bounds, group, onPoint];

  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    const lookUp = () => latestLines.current.map(({ colourName }) => chartColours(colourName));
    let colours = lookUp();
    const isolated = () => latestLines.current.map((line) => line.isolated);
    const plot = new uPlot(
      chartOptions({
        ...{ element, bounds, group, onPoint, isolated },
        colours: () => colours,
        marks: () => latestMarks.current,
      }),
      [[], ...colours.map(() => [])],
      element,
    );
    chart.current = plot;
    const endColours = onColoursChange(() => {
      colours = lookUp();
      plot.redraw();
    });
    const resizeObserver = new ResizeObserver(() =>
      plot.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    resizeObserver.observe(element);
    return () => {
      endColours();
      resizeObserver.disconnect();
      plot.destroy();
    };
  }, settings);

  // A new uPlot instance has no data, so this depends on the settings, too.
  useEffect(() => {
    const { current } = chart;
    current?.batch(() => {
      // The casts are safe: uPlot does not modify its data.
      current.setData([times as number[], ...lines.map(({ values }) => values as (number | null)[])], false);
      current.setScale("x", { min: fromMs, max: untilMs });
    });
  }, [times, lines, fromMs, untilMs, marks, ...settings]);

  return <div class="chart" ref={container} role="img" aria-label={label} />;
}
