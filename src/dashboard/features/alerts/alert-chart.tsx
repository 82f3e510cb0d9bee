import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Alert } from "../../../schemas/alerts/alert.ts";
import type { RuleSpec } from "../../../schemas/alerts/rule.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { aggregate } from "../../api/fleet-calls.ts";
import { alignedLines } from "../../charts/aggregate-lines.ts";
import { Chart } from "../../charts/chart.tsx";
import { BOUNDS } from "../../charts/chart-card.tsx";
import { lineOfAgent, type PastLine, usePastLine } from "../../charts/past-line.ts";
import { own } from "../../lib/format.ts";
import { type ChartPeriod, chartPeriod } from "./chart-period.ts";
import { FALLBACK_METRIC, levelsOf, metricsOf } from "./rules/condition-text.ts";

const onPoint = () => {};

/** What the chart of an alert shows. */
interface Shown {
  metric: string;
  title: string;
  bounds: readonly [number, number] | undefined;
}

/** The rule's metric around the moment when the alert fired. Loads when it comes into view. */
export function AlertChart({ alert, spec }: { alert: Alert; spec: RuleSpec | undefined }) {
  const container = useRef<HTMLDivElement>(null);
  const [isVisible, setIsVisible] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setIsVisible(true);
    });
    if (container.current !== null) observer.observe(container.current);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="alert-chart" ref={container}>
      {isVisible && <Loaded alert={alert} spec={spec} />}
    </div>
  );
}

function Loaded({ alert, spec }: { alert: Alert; spec: RuleSpec | undefined }) {
  const firedMs = Date.parse(alert.fired_at);
  const resolvedMs = alert.resolved_at === null ? undefined : Date.parse(alert.resolved_at);
  const period = useMemo(() => chartPeriod(firedMs, resolvedMs, serviceNowMs()), [alert.id, resolvedMs]);
  const { metric, title, bounds } = shownOf(alert, spec);
  const { data, error } = usePastLine(
    async (signal) => (period === undefined ? undefined : await lineOf(alert, spec, metric, period, signal)),
    [alert.id, metric, period],
  );
  const lines = useMemo(
    () => [{ values: data?.values ?? [], isolated: data?.isolated ?? [], colourName: "series-1" }],
    [data],
  );
  const marks = useMemo(
    () => ({
      periods: [{ fromMs: firedMs, untilMs: resolvedMs ?? period?.untilMs ?? firedMs }],
      levels: alert.ap_id === null || spec === undefined ? [] : levelsOf(spec.condition, metric),
    }),
    [alert.id, resolvedMs, spec, period],
  );
  // The text of the alert says what happened. A chart that cannot be shown adds nothing.
  const isEmpty = data?.isComplete === true && data.times.length === 0;
  if (period === undefined || isEmpty || (data === undefined && error !== undefined))
    return <p class="soft">No data at that time</p>;
  return (
    <figure>
      <figcaption class="soft">{title}</figcaption>
      <Chart
        times={data?.times ?? []}
        lines={lines}
        {...{ ...period, marks, bounds, onPoint }}
        group={`alert-${alert.id}`}
        label={`${title} when the alert fired`}
      />
    </figure>
  );
}

function shownOf({ ap_id }: Alert, spec: RuleSpec | undefined): Shown {
  const ofRule = spec && metricsOf(spec.condition)[0];
  const metric = ofRule ?? FALLBACK_METRIC;
  if (ap_id !== null) return { metric, title: metric, bounds: own(BOUNDS, metric) };
  return ofRule === undefined
    ? { metric, title: "Access points that report", bounds: undefined }
    : { metric, title: `Mean of ${metric}`, bounds: own(BOUNDS, metric) };
}

async function lineOf(
  { ap_id, group }: Alert,
  spec: RuleSpec | undefined,
  metric: string,
  { fromMs, untilMs }: ChartPeriod,
  signal: AbortSignal,
): Promise<PastLine> {
  const [since, until] = [new Date(fromMs).toISOString(), new Date(untilMs).toISOString()];
  if (ap_id !== null) {
    const window = `${Math.ceil((serviceNowMs() - fromMs) / 1_000)}s`;
    return await lineOfAgent({ agent: ap_id, metric, window, since }, signal);
  }
  const selector = `${spec?.group?.by ?? "site"}=${group ?? ""}`;
  const statistic = spec !== undefined && metricsOf(spec.condition).length > 0 ? "avg" : "count";
  const period = { start_time: since, end_time: until };
  const response = await aggregate({ selector, metrics: [metric], by: "", statistic, period }, signal);
  const { times, lines } = alignedLines(metric, response.groups, response.bucket_ms);
  const [line = { values: [], isolated: [] }] = lines;
  return { times, values: line.values, isolated: line.isolated, isComplete: response.complete_from === undefined };
}
