import { type Signal, useSignal } from "@preact/signals";
import { useId, useMemo, useState } from "preact/hooks";
import { agentMetrics } from "../../api/operations.ts";
import { replaceRoute } from "../../app/router.ts";
import { ChartCard } from "../../charts/chart-card.tsx";
import { type Metric, MetricChoice, WindowChoice } from "../../charts/chart-choices.tsx";
import { chosenMetrics, saveChosenMetrics } from "../../charts/chosen-metrics.ts";
import { DownloadMenu, useDownload } from "../../charts/download-menu.tsx";
import { useLiveSeries } from "../../charts/live-series.ts";
import { momentText } from "../../charts/time-axis.ts";
import { type ChartWindow, WINDOWS, windowOf } from "../../charts/windows.ts";
import { Empty, Failed, Loading, MissingBefore } from "../../components/states.tsx";
import { usePoll } from "../../lib/poll.ts";
import "../../style/charts.css";

/** Access points rarely start or stop reporting a metric. */
const METRICS_INTERVAL_MS = 30_000;

/** Shows the metrics of an access point over time. The address contains the window and the chosen metrics. */
export function Charts({ apId, type, query }: { apId: string; type: string | null; query: URLSearchParams }) {
  const window = windowOf(query.get("window"));
  const listed = usePoll(async (signal) => (await agentMetrics(apId, window.id, signal)).metrics, METRICS_INTERVAL_MS, [
    apId,
    window.id,
  ]);
  const choose = (change: { window?: string; metrics?: string }) =>
    replaceRoute(["access-points", apId], { ...Object.fromEntries(query), ...change });
  const onWindow = ({ id }: ChartWindow) => choose({ window: id });
  const known = listed.data;
  const metricsInAddress = query.get("metrics");
  const chosen = useMemo(
    () => chosenMetrics(metricsInAddress, type, known?.map(({ name }) => name) ?? []),
    [metricsInAddress, type, known],
  );

  return (
    <section aria-labelledby="charts-title" class="stack">
      <div class="spread">
        <h2 id="charts-title">Metrics</h2>
        <WindowChoice chosen={window} onChoose={onWindow} />
      </div>
      {known === undefined ? (
        listed.error === undefined ? (
          <div class="charts-loading">
            <Loading />
          </div>
        ) : (
          <Failed error={listed.error} onRetry={listed.refresh} />
        )
      ) : known.length === 0 ? (
        <NoReports window={window} onWindow={onWindow} />
      ) : (
        <ChartGrid
          key={`${apId} ${window.id}`}
          {...{ apId, window, known, chosen }}
          onChoose={(metrics) => {
            saveChosenMetrics(type, metrics);
            choose({ metrics: metrics.join() });
          }}
        />
      )}
    </section>
  );
}

function NoReports({ window, onWindow }: { window: ChartWindow; onWindow(window: ChartWindow): void }) {
  const longer = WINDOWS.filter(({ ms }) => ms > window.ms);
  // Offer the next longer window and the longest. The selection above the charts has all of them.
  const offered = longer.length > 1 ? [...longer.slice(0, 1), ...longer.slice(-1)] : longer;
  return (
    <Empty title={`No reports in the last ${window.label}`}>
      <p>
        Check that the access point is switched on and connected{offered.length === 0 ? "." : ", or look further back:"}
      </p>
      <p class="row centred">
        {offered.map((other) => (
          <button type="button" key={other.id} onClick={() => onWindow(other)}>
            Show the last {other.label}
          </button>
        ))}
      </p>
    </Empty>
  );
}

interface ChartGridProps {
  apId: string;
  window: ChartWindow;
  known: readonly Metric[];
  chosen: readonly string[];
  onChoose(chosen: string[]): void;
}

function ChartGrid({ apId, window, known, chosen, onChoose }: ChartGridProps) {
  const [isPaused, setIsPaused] = useState(false);
  const [large, setLarge] = useState<string>();
  const group = useId();
  const pointed = useSignal<number | undefined>(undefined);
  const { store, isLoaded, untilMs, missingBeforeMs, error } = useLiveSeries(apId, chosen, window, isPaused);
  const download = useDownload({ agent: apId, metrics: chosen, windowMs: window.ms, untilMs });
  // The charts keep their points during an outage. A notice at the top of the page reports the outage.
  const state = isPaused ? "Paused" : error !== undefined ? "Out of date" : intervalText(window);
  // A chosen metric without points in this window keeps its chart.
  const metrics = [
    ...known,
    ...chosen.filter((name) => known.every((other) => other.name !== name)).map((name) => ({ name, label: name })),
  ];
  const labelOf = (name: string) => metrics.find((metric) => metric.name === name)?.label ?? name;

  return (
    <>
      <div class="spread">
        <MetricChoice metrics={metrics} chosen={chosen} onChoose={onChoose} />
        <div class="row">
          <PointedTime pointed={pointed} window={window} otherwise={state} />
          <button type="button" class="small" onClick={() => setIsPaused(!isPaused)}>
            {isPaused ? "Resume" : "Pause"}
          </button>
          <DownloadMenu download={download} isEmpty={chosen.length === 0} />
        </div>
      </div>
      <Failed error={download.error} />
      {!isLoaded && <Failed error={error} />}
      <MissingBefore time={missingBeforeMs === undefined ? undefined : momentText(missingBeforeMs, window.ms)} />
      {chosen.length === 0 ? (
        <Empty title="No metrics selected">
          <p>Open “Choose metrics” and select the metrics to show.</p>
        </Empty>
      ) : (
        <div class="charts">
          {chosen.map((metric, i) => (
            <ChartCard
              key={metric}
              metric={metric}
              label={labelOf(metric)}
              series={store.series(metric)}
              colourName={`series-${i + 1}`}
              isLarge={large === metric}
              onLarge={() => setLarge(large === metric ? undefined : metric)}
              {...{ isLoaded, window, untilMs, group, pointedMs: pointed }}
            />
          ))}
        </div>
      )}
    </>
  );
}

const intervalText = ({ intervalMs }: ChartWindow): string =>
  intervalMs <= 1_000 ? "Live" : `Updated every ${intervalMs / 1_000} s`;

/** Shows the time under the pointer, or the state of the charts if the pointer is elsewhere. */
function PointedTime(props: { pointed: Signal<number | undefined>; window: ChartWindow; otherwise: string }) {
  const timeMs = props.pointed.value;
  return (
    <span class="soft moment">{timeMs === undefined ? props.otherwise : momentText(timeMs, props.window.ms)}</span>
  );
}
