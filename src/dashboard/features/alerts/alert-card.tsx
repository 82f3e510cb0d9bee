import { useState } from "preact/hooks";
import type { Alert, Silence } from "../../../schemas/alerts/alert.ts";
import type { AlertRule } from "../../../schemas/alerts/saved-rule.ts";
import { acknowledgeAlert } from "../../api/alert-calls.ts";
import { href } from "../../app/router.ts";
import { notify } from "../../components/notices.tsx";
import { Failed } from "../../components/states.tsx";
import { Ago, timeText } from "../../components/time.tsx";
import { useAction } from "../../lib/action.ts";
import { parseIdentifier } from "../administration/audit/audit-text.ts";
import { SeverityMark } from "../events/severity.tsx";
import { AlertChart } from "./alert-chart.tsx";
import { SilenceAlert } from "./silence-dialog.tsx";

interface AlertCardProps {
  alert: Alert;
  rule: AlertRule | undefined;
  silence: Silence | undefined;
  mayOperate: boolean;
  onChanged(): void;
}

/** An alert that fires: what, since when, its chart, and what to do about it. */
export function AlertCard({ alert, rule, silence, mayOperate, onChanged }: AlertCardProps) {
  const { ap_id, text, fired_at, severity, acknowledged_at, acknowledged_by } = alert;
  const [isSilencing, setIsSilencing] = useState(false);
  const acknowledge = useAction(async () => {
    await acknowledgeAlert(alert.id);
    notify("The alert was acknowledged.");
    onChanged();
  });
  return (
    <li class={`alert ${severity}`} aria-label={text}>
      <div class="alert-text">
        <p class="row">
          <SeverityMark severity={severity} />
          {rule === undefined ? (
            <span class="soft">{alert.rule}</span>
          ) : (
            <a href={href(["alerts", "rules", rule.id])}>{alert.rule}</a>
          )}
        </p>
        <p class="alert-title">{text}</p>
        <p class="soft">
          Firing since {timeText(fired_at)} (<Ago ts={fired_at} />)
          {acknowledged_at !== null && (
            <>
              <br />
              Acknowledged by {parseIdentifier(acknowledged_by ?? "").name} <Ago ts={acknowledged_at} />
            </>
          )}
          {silence !== undefined && (
            <>
              <br />
              Silenced until {timeText(silence.until)}
              {silence.reason !== "" && `: ${silence.reason}`}
            </>
          )}
          {silence === undefined && alert.silenced && (
            <>
              <br />
              Silenced
            </>
          )}
        </p>
        <Failed error={acknowledge.error} />
        <div class="row">
          {mayOperate && acknowledged_at === null && (
            <button
              type="button"
              class="small"
              disabled={acknowledge.isBusy}
              aria-label={`Acknowledge: ${text}`}
              onClick={() => void acknowledge.run()}
            >
              Acknowledge
            </button>
          )}
          {mayOperate && silence === undefined && (
            <button type="button" class="small" aria-label={`Silence: ${text}`} onClick={() => setIsSilencing(true)}>
              Silence…
            </button>
          )}
          {ap_id === null ? (
            alert.labels.site !== undefined && (
              <a class="button small" href={href([], { selector: `site=${alert.labels.site}` })}>
                Open site
              </a>
            )
          ) : (
            <a class="button small" href={href(["access-points", ap_id])}>
              Open access point
            </a>
          )}
        </div>
      </div>
      <AlertChart alert={alert} spec={rule?.spec} />
      {isSilencing && <SilenceAlert alert={alert} onDone={onChanged} onClose={() => setIsSilencing(false)} />}
    </li>
  );
}
