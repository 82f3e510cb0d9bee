import { type Signal, useSignal } from "@preact/signals";
import { useId, useMemo, useState } from "preact/hooks";
import { agentMetrics } from "../../api/operations.ts";
import { replaceRoute } from "../../app/router.ts";
import { ChartCard } from "../../charts/chart-card.tsx";
import { type Metric, MetricChoice, WindowChoice } from "../../charts/chart-choices.tsx";
import { chosenMetrics, saveChosenMetrics } from "../../charts/chosen-metrics.ts";
import { saveSeries, useLiveSeries } from "../../charts/live-series.ts";
import { momentText } from "../../charts/time-axis.ts";
import { type ChartWindow, WINDOWS, windowOf } from "../../charts/windows.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { usePoll } from "../../lib/poll.ts";

/** Metrics seldom come and go. */
const METRICS_EVERY_MS = 30_000;

/** What an access point reports, over time. What is chosen is part of the address. */
export function Charts({ apId, type, query }: { apId: string; type: string | null; query: URLSearchParams }) {
  const window = windowOf(query.get("window"));
  const listed = usePoll(async (signal) => (await agentMetrics(apId, window.id, signal)).metrics, METRICS_EVERY_MS, [
    apId,
    window.id,
  ]);
  const choose = (change: { window?: string; metrics?: string }) =>
    replaceRoute(["access-points", apId], { ...Object.fromEntries(query), ...change });
  const onWindow = ({ id }: ChartWindow) => choose({ window: id });
  const known = listed.data;
  const asked = query.get("metrics");
  const chosen = useMemo(() => chosenMetrics(asked, type, known?.map(({ name }) => name) ?? []), [asked, type, known]);

  return (
    <section aria-labelledby="charts-title" class="stack">
      <div class="spread">
        <h2 id="charts-title">Measurements</h2>
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
        <NothingYet window={window} onWindow={onWindow} />
      ) : (
        <Grid
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

function NothingYet({ window, onWindow }: { window: ChartWindow; onWindow(window: ChartWindow): void }) {
  const all = WINDOWS.filter(({ ms }) => ms > window.ms);
  // The next one and the longest will do; all of them are above.
  const longer = all.length > 1 ? [...all.slice(0, 1), ...all.slice(-1)] : all;
  return (
    <Empty title={`This access point has not reported anything in the last ${window.label}.`}>
      <p>{longer.length === 0 ? "Look whether it is switched on and connected." : "It may have done so before:"}</p>
      <p class="row centred">
        {longer.map((other) => (
          <button type="button" key={other.id} onClick={() => onWindow(other)}>
            Look back {other.label}
          </button>
        ))}
      </p>
    </Empty>
  );
}

interface GridProps {
  apId: string;
  window: ChartWindow;
  known: readonly Metric[];
  chosen: readonly string[];
  onChoose(chosen: string[]): void;
}

function Grid({ apId, window, known, chosen, onChoose }: GridProps) {
  const [isPaused, setIsPaused] = useState(false);
  const [large, setLarge] = useState<string>();
  const group = useId();
  const pointed = useSignal<number | undefined>(undefined);
  const { store, isLoaded, untilMs, error } = useLiveSeries(apId, chosen, window, isPaused);
  // What there is stays to be seen; that the service is away is told at the top of the page.
  const state = isPaused ? "Paused" : error !== undefined ? "Out of date" : rhythmText(window);
  // One that is silent in this window keeps its place among the others.
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
          <Moment pointed={pointed} window={window} otherwise={state} />
          <button type="button" class="small" onClick={() => setIsPaused(!isPaused)}>
            {isPaused ? "Resume" : "Pause"}
          </button>
          <button
            type="button"
            class="small"
            disabled={!isLoaded}
            onClick={() => saveSeries(`${apId}-${window.id}`, store, chosen)}
          >
            Download CSV
          </button>
        </div>
      </div>
      {!isLoaded && <Failed error={error} />}
      {chosen.length === 0 ? (
        <Empty title="No metric is chosen.">
          <p>Open “Choose metrics” and pick what you want to see.</p>
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

const rhythmText = ({ intervalMs }: ChartWindow): string =>
  intervalMs <= 1_000 ? "Live" : `Every ${intervalMs / 1_000} s`;

/** Of when the values are: a moment that is pointed at, or the latest. */
function Moment(props: { pointed: Signal<number | undefined>; window: ChartWindow; otherwise: string }) {
  const timeMs = props.pointed.value;
  return (
    <span class="soft moment">{timeMs === undefined ? props.otherwise : momentText(timeMs, props.window.ms)}</span>
  );
}
