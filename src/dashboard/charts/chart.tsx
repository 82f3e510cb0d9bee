import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onColours } from "../app/theme.ts";
import { type ChartLook, chartColours, chartOptions } from "./chart-options.ts";
import type { Line } from "./gaps.ts";

export interface ChartProps extends Pick<ChartLook, "bounds" | "group" | "onPoint"> {
  line: Line;
  fromMs: number;
  untilMs: number;
  /** The name of its colour in the style sheet. */
  colourName: string;
  /** What there is to see, for those who do not see it. */
  label: string;
}

/** One line over time. uPlot draws it; it is told what is new rather than made anew. */
export function Chart({ line, fromMs, untilMs, colourName, bounds, label, group, onPoint }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const latestLine = useRef(line);
  latestLine.current = line;
  const look = [colourName, bounds, group, onPoint];

  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let colours = chartColours(colourName);
    const lonely = () => latestLine.current.lonely;
    const made = new uPlot(
      chartOptions({ element, bounds, group, onPoint, lonely, colours: () => colours }),
      [[], []],
      element,
    );
    chart.current = made;
    const endColours = onColours(() => {
      colours = chartColours(colourName);
      made.redraw();
    });
    const resizing = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    resizing.observe(element);
    return () => {
      endColours();
      resizing.disconnect();
      made.destroy();
    };
  }, look);

  // A chart that was made anew has no data yet.
  useEffect(() => {
    const { current } = chart;
    current?.batch(() => {
      // uPlot changes nothing of what it is given.
      current.setData([line.times as number[], line.values as (number | null)[]], false);
      current.setScale("x", { min: fromMs, max: untilMs });
    });
  }, [line, fromMs, untilMs, ...look]);

  return <div class="chart" ref={place} role="img" aria-label={label} />;
}
