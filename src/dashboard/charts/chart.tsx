import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { onColoursChange } from "../app/theme.ts";
import { type ChartSettings, chartColours, chartOptions } from "./chart-options.ts";
import type { Line } from "./gaps.ts";

export interface ChartProps extends Pick<ChartSettings, "bounds" | "group" | "onPoint"> {
  line: Line;
  fromMs: number;
  untilMs: number;
  /** The name of the line's colour in the style sheet. */
  colourName: string;
  /** Describes the line to screen readers. */
  label: string;
}

/** One line over time, drawn by uPlot. New data update the uPlot instance instead of replacing it. */
export function Chart({ line, fromMs, untilMs, colourName, bounds, label, group, onPoint }: ChartProps) {
  const container = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const latestLine = useRef(line);
  latestLine.current = line;
  const settings = [colourName, bounds, group, onPoint];

  useEffect(() => {
    const element = container.current;
    if (element === null) return;
    let colours = chartColours(colourName);
    const isolated = () => latestLine.current.isolated;
    const plot = new uPlot(
      chartOptions({ element, bounds, group, onPoint, isolated, colours: () => colours }),
      [[], []],
      element,
    );
    chart.current = plot;
    const endColours = onColoursChange(() => {
      colours = chartColours(colourName);
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
      current.setData([line.times as number[], line.values as (number | null)[]], false);
      current.setScale("x", { min: fromMs, max: untilMs });
    });
  }, [line, fromMs, untilMs, ...settings]);

  return <div class="chart" ref={container} role="img" aria-label={label} />;
}
