import { useMemo } from "preact/hooks";
import type { Backtest } from "../../../../schemas/alerts/backtest.ts";
import type { Condition } from "../../../../schemas/alerts/rule.ts";
import { Chart } from "../../../charts/chart.tsx";
import { BOUNDS } from "../../../charts/chart-card.tsx";
import { lineOfAgent, usePastLine } from "../../../charts/past-line.ts";
import type { ChartWindow } from "../../../charts/windows.ts";
import { Failed } from "../../../components/states.tsx";
import { countOf, own } from "../../../lib/format.ts";
import { firedPeriods, firingCounts } from "./backtest-lines.ts";
import { FALLBACK_METRIC, levelsOf, metricsOf } from "./condition-text.ts";

const onPoint = () => {};

interface BacktestChartProps {
  result: Backtest;
  condition: Condition;
  window: ChartWindow;
}

/** Draws a metric of one access point, and shades the time in which the rule would have fired. */
export function AgentChart({ result, condition, window, apId }: BacktestChartProps & { apId: string }) {
  const metric = metricsOf(condition)[0] ?? FALLBACK_METRIC;
  const { data, error, refresh } = usePastLine(
    (signal) => lineOfAgent({ agent: apId, metric, window: window.id }, signal),
    [apId, metric, window.id],
  );
  const lines = useMemo(() => {
    const { values, isolated } = data ?? { values: [], isolated: [] };
    return [{ values, isolated, colourName: "series-1" }];
  }, [data]);
  const marks = useMemo(
    () => ({ periods: firedPeriods(result, apId), levels: levelsOf(condition, metric) }),
    [result, apId, condition, metric],
  );
  const fired = marks.periods.length === 0 ? "no alerts" : countOf(marks.periods.length, "alert");
  return (
    <figure class="backtest-chart">
      <figcaption>
        <strong>{metric}</strong> of {apId}: {fired}
        {data?.times.length === 0 && <span class="soft"> (no data in this period)</span>}
      </figcaption>
      <Failed error={data === undefined ? error : undefined} onRetry={refresh} />
      <Chart
        times={data?.times ?? []}
        lines={lines}
        fromMs={Date.parse(result.from)}
        untilMs={Date.parse(result.to)}
        marks={marks}
        bounds={own(BOUNDS, metric)}
        group="backtest"
        label={`${metric} of ${apId} in the last ${window.label}: ${fired}`}
        onPoint={onPoint}
      />
    </figure>
  );
}

/** Draws how many alerts would have fired at the same time. */
export function CountChart({ result, window }: Omit<BacktestChartProps, "condition">) {
  const [fromMs, untilMs] = [Date.parse(result.from), Date.parse(result.to)];
  const { times, lines, most } = useMemo(() => {
    const { times, values } = firingCounts(firedPeriods(result), fromMs, untilMs);
    return { times, lines: [{ values, isolated: [], colourName: "series-5" }], most: Math.max(...values) };
  }, [result]);
  return (
    <figure class="backtest-chart">
      <figcaption>
        <strong>Alerts at the same time</strong>, at most {most}
      </figcaption>
      <Chart
        {...{ times, lines, fromMs, untilMs, onPoint }}
        bounds={undefined}
        group="backtest"
        label={`Alerts at the same time in the last ${window.label}: at most ${most}`}
      />
    </figure>
  );
}
