import { useSignal } from "@preact/signals";
import { useId, useMemo, useState } from "preact/hooks";
import type { Statistic } from "../../../schemas/metrics.ts";
import { serviceNowMs } from "../../api/clock.ts";
import { aggregate } from "../../api/fleet-calls.ts";
import { alignedLines, largestGroups } from "../../charts/aggregate-lines.ts";
import { BOUNDS } from "../../charts/chart-card.tsx";
import { WindowChoice } from "../../charts/chart-choices.tsx";
import { DownloadMenu, useDownload } from "../../charts/download-menu.tsx";
import { LinesCard } from "../../charts/lines-card.tsx";
import { momentText } from "../../charts/time-axis.ts";
import { windowOf } from "../../charts/windows.ts";
import { Failed, MissingBefore } from "../../components/states.tsx";
import { own } from "../../lib/format.ts";
import { usePoll } from "../../lib/poll.ts";
import { vocabulary } from "../../selectors/vocabulary.ts";
import "../../style/charts.css";

const METRICS = [
  { name: "users", label: "Users" },
  { name: "load", label: "Load" },
  { name: "quality", label: "Quality" },
] as const;

const STATISTICS: readonly (readonly [Statistic, string])[] = [
  ["avg", "Mean"],
  ["sum", "Sum"],
  ["min", "Minimum"],
  ["max", "Maximum"],
  ["p50", "Median"],
  ["p95", "95th percentile"],
  ["count", "Count"],
];

/** Shares have a fixed range, but their sums and numbers do not. */
const isShare = (statistic: Statistic): boolean => statistic !== "sum" && statistic !== "count";

/** An aggregate of many access points costs more than the series of one, and has one value for each minute at most. */
const MIN_INTERVAL_MS = 10_000;
const DEFAULT_WINDOW = "1h";
/** The keys that are offered before the labels have loaded, and first. */
const COMMON_KEYS = ["site", "technology"];

/** Charts of all access points of a selector together, or by the values of a label. */
export function SelectionCharts({ selector, title }: { selector: string; title: string }) {
  const group = useId();
  const pointed = useSignal<number | undefined>(undefined);
  const [window, setWindow] = useState(() => windowOf(DEFAULT_WINDOW));
  const [statistic, setStatistic] = useState<Statistic>("avg");
  const [by, setBy] = useState("");
  const intervalMs = Math.max(MIN_INTERVAL_MS, window.intervalMs);
  const { data, error } = usePoll(
    async (signal) => {
      const request = { selector, metrics: METRICS.map(({ name }) => name), by, statistic, window: window.id };
      return { response: await aggregate(request, signal), atMs: serviceNowMs() };
    },
    intervalMs,
    [selector, by, statistic, window.id],
  );
  const charts = useMemo(() => {
    const groups = data === undefined ? [] : largestGroups(data.response);
    return METRICS.map(({ name, label }) => ({
      name,
      label,
      lines: alignedLines(name, groups, data?.response.bucket_ms ?? 0),
    }));
  }, [data]);
  const keys = [...new Set([...COMMON_KEYS, ...vocabulary.value.labels.map(({ key }) => key)])];
  const completeFrom = data?.response.complete_from;
  const groupCount = data?.response.groups.length ?? 0;
  const shownCount = charts[0]?.lines.lines.length ?? 0;
  const untilMs = data?.atMs ?? serviceNowMs();
  const download = useDownload({
    selector: selector === "" ? undefined : selector,
    metrics: METRICS.map(({ name }) => name),
    windowMs: window.ms,
    untilMs,
  });
  const state = error === undefined ? `Updated every ${intervalMs / 1_000} s` : "Out of date";
  return (
    <section class="card stack selection-charts" aria-labelledby="selection-charts-title">
      <div class="spread">
        <h2 id="selection-charts-title">
          Charts <small class="soft">{title}</small>
        </h2>
        <WindowChoice chosen={window} onChoose={setWindow} />
      </div>
      <div class="row chart-settings">
        <label>
          Statistic
          <select value={statistic} onChange={({ currentTarget }) => setStatistic(currentTarget.value as Statistic)}>
            {STATISTICS.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          One line for each
          <select value={by} onChange={({ currentTarget }) => setBy(currentTarget.value)}>
            <option value="">– (all together)</option>
            {keys.map((key) => (
              <option key={key} value={key}>
                {key}
              </option>
            ))}
          </select>
        </label>
        <span class="soft moment">{pointed.value === undefined ? state : momentText(pointed.value, window.ms)}</span>
        <DownloadMenu download={download} />
      </div>
      <Failed error={download.error} />
      {data === undefined && <Failed error={error} />}
      <MissingBefore time={completeFrom && momentText(Date.parse(completeFrom), window.ms)} />
      <div class="charts">
        {charts.map(({ name, label, lines }, i) => (
          <LinesCard
            key={name}
            title={label}
            data={lines}
            isLoaded={data !== undefined}
            bounds={isShare(statistic) ? own(BOUNDS, name) : undefined}
            firstColour={by === "" ? i + 1 : 1}
            pointedMs={pointed}
            {...{ window, untilMs, group }}
          />
        ))}
      </div>
      {groupCount > shownCount && (
        <p class="hint">
          Shows the {shownCount} largest of {groupCount.toLocaleString("en")} groups. Filter the access points to see
          the others.
        </p>
      )}
    </section>
  );
}
