import type { Alert } from "../../../schemas/alerts/alert.ts";
import { href, navigate, type PageProps } from "../../app/router.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { Ago, timeText } from "../../components/time.tsx";
import { durationText } from "../../lib/duration.ts";
import { SelectorBar } from "../../selectors/selector-bar.tsx";
import { parseIdentifier } from "../administration/audit/audit-text.ts";
import { SeverityMark } from "../events/severity.tsx";
import { useAlertHistory } from "./use-alerts.ts";

const HISTORY_PATH = ["alerts", "history"];

/** Alerts that have ended. */
export function HistoryTab({ route: { query } }: PageProps) {
  const selector = query.get("selector") ?? "";
  const { newest, alerts, older, hasOlder, selectorError } = useAlertHistory(selector);
  return (
    <section class="stack" aria-label="History">
      <SelectorBar
        selector={selector}
        error={selectorError}
        onSelector={(changed) => navigate(HISTORY_PATH, { selector: changed })}
      />
      {selectorError === undefined && <Failed error={newest.error} onRetry={newest.refresh} />}
      {newest.data === undefined && newest.error === undefined && <Loading lines={8} />}
      {newest.data !== undefined && alerts.length === 0 && (
        <Empty title={selector === "" ? "No alert has ended yet" : "No alerts match this filter"} />
      )}
      {alerts.length > 0 && (
        <div class="table">
          <table class="alert-history">
            <thead>
              <tr>
                <th>Fired</th>
                <th>For</th>
                <th>Alert</th>
                <th>Access point</th>
              </tr>
            </thead>
            <tbody>
              {alerts.map((alert) => (
                <Row key={alert.id} alert={alert} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Failed error={older.error} />
      {hasOlder && (
        <button type="button" class="show-more" disabled={older.isBusy} onClick={() => void older.run()}>
          Show older alerts
        </button>
      )}
    </section>
  );
}

function Row({ alert }: { alert: Alert }) {
  const { fired_at, resolved_at, severity, rule, text, ap_id, group, acknowledged_by } = alert;
  const seconds = (Date.parse(resolved_at ?? fired_at) - Date.parse(fired_at)) / 1_000;
  return (
    <tr>
      <td>
        {timeText(fired_at)}
        <span class="soft">
          <Ago ts={fired_at} />
        </span>
      </td>
      <td>{durationText(seconds)}</td>
      <td>
        <SeverityMark severity={severity}>{text}</SeverityMark>
        <span class="soft">
          {rule}
          {acknowledged_by !== null && ` · acknowledged by ${parseIdentifier(acknowledged_by).name}`}
        </span>
      </td>
      <td>{ap_id === null ? (group ?? "–") : <a href={href(["access-points", ap_id])}>{ap_id}</a>}</td>
    </tr>
  );
}
