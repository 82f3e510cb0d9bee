import { useId, useRef, useState } from "preact/hooks";
import type { Backtest } from "../../../../schemas/alerts/backtest.ts";
import type { Condition } from "../../../../schemas/alerts/rule.ts";
import { hasFieldErrors } from "../../../api/call.ts";
import { overview } from "../../../api/operations.ts";
import { WindowChoice } from "../../../charts/chart-choices.tsx";
import { momentText } from "../../../charts/time-axis.ts";
import { type ChartWindow, WINDOWS } from "../../../charts/windows.ts";
import { TextField } from "../../../components/form.tsx";
import { Failed, Loading } from "../../../components/states.tsx";
import { timeText } from "../../../components/time.tsx";
import { durationText } from "../../../lib/duration.ts";
import { useLoaded } from "../../../lib/load.ts";
import { AgentChart, CountChart } from "./backtest-chart.tsx";
import { subjectOf, subjects, summaryText } from "./backtest-lines.ts";
import type { BacktestState } from "./use-backtest.ts";

const TESTED = ["1h", "6h", "24h", "7d", "30d"];
export const TEST_WINDOWS: readonly ChartWindow[] = WINDOWS.filter(({ id }) => TESTED.includes(id));
const MAX_SUGGESTED = 200;
const MAX_LISTED = 8;

/** Shows which alerts a rule would have sent in the past. */
export function BacktestPanel({
  backtest,
  condition,
  selector,
  window,
  onWindow,
}: {
  backtest: BacktestState;
  /** Undefined while the rule is not complete. */
  condition: Condition | undefined;
  selector: string;
  window: ChartWindow;
  onWindow(window: ChartWindow): void;
}) {
  const { result, error, isBusy, retry } = backtest;
  const lastCondition = useRef(condition);
  if (condition !== undefined) lastCondition.current = condition;
  const shown = lastCondition.current;
  const isInvalid = condition === undefined || hasFieldErrors(error);
  return (
    <section class="card stack backtest" aria-labelledby="backtest-title" aria-busy={isBusy}>
      <div class="spread">
        <h2 id="backtest-title">Test on the past</h2>
        <WindowChoice windows={TEST_WINDOWS} chosen={window} onChoose={onWindow} />
      </div>
      <p class="backtest-summary" role="status">
        {isInvalid ? "Correct the rule to test it." : result !== undefined && summaryText(result)}
        {isBusy && <span class="soft"> Testing…</span>}
      </p>
      {!hasFieldErrors(error) && <Failed error={error} onRetry={retry} />}
      {result === undefined || shown === undefined ? (
        isBusy && <Loading lines={6} />
      ) : (
        <Result {...{ result, selector, window }} condition={shown} />
      )}
    </section>
  );
}

function Result(props: { result: Backtest; condition: Condition; selector: string; window: ChartWindow }) {
  const { result, selector } = props;
  const list = useId();
  const [typed, setTyped] = useState<string>();
  const automatic = useRef<string>(undefined);
  const watched = useLoaded(
    async (signal) => (await overview(selector, signal)).access_points.map(({ ap_id }) => ap_id),
    [selector],
  ).data;
  const fired = subjects(result);
  const isGrouped = result.alerts.some(({ ap_id }) => ap_id === null);
  // The chart stays with its access point while the rule is typed.
  if (automatic.current === undefined || (watched !== undefined && !watched.includes(automatic.current)))
    automatic.current = (isGrouped ? undefined : fired[0]?.name) ?? watched?.[0];
  const apId = typed ?? automatic.current ?? "";
  const isKnown = watched?.includes(apId) ?? apId !== "";
  return (
    <>
      <TextField
        label="Access point on the chart"
        hint="Empty: the number of alerts of all access points."
        autocomplete="off"
        list={list}
        value={apId}
        onValue={setTyped}
        error={apId === "" || isKnown ? undefined : "The rule does not watch an access point with this name."}
      />
      <datalist id={list}>
        {[...new Set([...(isGrouped ? [] : fired.map(({ name }) => name)), ...(watched ?? [])])]
          .slice(0, MAX_SUGGESTED)
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
      {apId !== "" && isKnown ? <AgentChart key={apId} {...props} apId={apId} /> : <CountChart {...props} />}
      <PastAlerts
        result={result}
        windowMs={props.window.ms}
        apId={apId !== "" && isKnown && !isGrouped ? apId : undefined}
      />
    </>
  );
}

/** Lists the last alerts, of one access point if it has any. */
function PastAlerts({ result, apId, windowMs }: { result: Backtest; apId: string | undefined; windowMs: number }) {
  const ofAgent = result.alerts.filter(({ ap_id }) => ap_id === apId);
  const listed = (ofAgent.length > 0 ? ofAgent : result.alerts).slice(-MAX_LISTED).toReversed();
  if (listed.length === 0) return null;
  return (
    <div class="table">
      <table class="past-alerts">
        <caption class="hidden-text">The last alerts that the rule would have sent</caption>
        <thead>
          <tr>
            <th>Fired</th>
            <th>For</th>
            <th>Alert</th>
          </tr>
        </thead>
        <tbody>
          {listed.map((alert) => (
            <tr key={`${subjectOf(alert)} ${alert.fired_at}`}>
              <td title={timeText(alert.fired_at)}>{momentText(Date.parse(alert.fired_at), windowMs)}</td>
              <td>{alert.resolved_at === null ? "still fires" : durationText(alert.duration_s)}</td>
              <td>{alert.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
