import { navigate, type PageProps } from "../../app/router.ts";
import { Empty, Failed, Loading } from "../../components/states.tsx";
import { SelectorBar } from "../../selectors/selector-bar.tsx";
import { AlertCard } from "./alert-card.tsx";
import { bySite, countsText, type SiteAlerts, silenceOf } from "./alert-groups.ts";
import { useMayOperate } from "./permissions.ts";
import { type CurrentAlerts, MAX_ALERTS, useCurrentAlerts } from "./use-alerts.ts";

/** Charts and buttons of many alerts make the page slow. The filter shows the others. */
const MAX_SHOWN = 100;

/** The alerts that fire now, by site and severity. */
export function CurrentTab({ route: { query } }: PageProps) {
  const selector = query.get("selector") ?? "";
  const { current, selectorError, error, refresh } = useCurrentAlerts(selector);
  const mayOperate = useMayOperate();
  const count = current?.alerts.length ?? 0;
  let left = MAX_SHOWN;
  return (
    <section class="stack" aria-label="Current alerts">
      <SelectorBar
        selector={selector}
        error={selectorError}
        onSelector={(changed) => navigate(["alerts"], { selector: changed })}
      />
      <Failed error={error} onRetry={refresh} />
      {current === undefined ? (
        error === undefined && selectorError === undefined && <Loading lines={6} />
      ) : count === 0 ? (
        <Nothing isFiltered={selector !== ""} rules={current.rules} />
      ) : (
        <>
          <p class="soft records-count" role="status">
            {count >= MAX_ALERTS ? `More than ${MAX_ALERTS - 1} alerts fire` : `${count} firing`}
            {count > MAX_SHOWN && `. Shows the ${MAX_SHOWN} most severe: filter to see the others.`}
          </p>
          {bySite(current.alerts).map((group) => {
            const shown = group.alerts.slice(0, Math.max(0, left));
            left -= group.alerts.length;
            return <Site key={group.site} group={{ ...group, alerts: shown }} {...{ current, mayOperate, refresh }} />;
          })}
        </>
      )}
    </section>
  );
}

function Site({
  group: { site, counts, alerts },
  current,
  mayOperate,
  refresh,
}: {
  group: SiteAlerts;
  current: CurrentAlerts;
  mayOperate: ReturnType<typeof useMayOperate>;
  refresh(): void;
}) {
  if (alerts.length === 0) return null;
  return (
    <section class="site-alerts" aria-label={site ?? "Without a site"}>
      <h2>
        {site ?? "Without a site"} <small class="soft">{countsText(counts)}</small>
      </h2>
      <ul class="alerts">
        {alerts.map((alert) => (
          <AlertCard
            key={alert.id}
            alert={alert}
            rule={current.rules.get(alert.rule_id)}
            silence={silenceOf(alert, current.silences)}
            mayOperate={mayOperate(alert.labels)}
            onChanged={refresh}
          />
        ))}
      </ul>
    </section>
  );
}

function Nothing({ isFiltered, rules }: { isFiltered: boolean; rules: CurrentAlerts["rules"] }) {
  if (isFiltered) return <Empty title="No alerts match this filter" />;
  const enabled = [...rules.values()].filter((rule) => rule.enabled).length;
  return (
    <div class="card">
      <Empty title="No alerts fire">
        <p>
          {enabled === 0 ? (
            <>
              No rule is enabled. <a href="#/alerts/rules">Choose the rules</a> that watch your access points.
            </>
          ) : (
            `${enabled} ${enabled === 1 ? "rule watches" : "rules watch"} your access points.`
          )}
        </p>
      </Empty>
    </div>
  );
}
