import type { Alert, Silence } from "../../../schemas/alerts/alert.ts";
import type { Severity } from "../../../schemas/events.ts";
import { isGroup, matches, parseSelector } from "../../../schemas/fleet/selector-syntax.ts";
import { BY_SEVERITY } from "../events/event-text.ts";

/** Alerts in the order in which people need them. */

/** The alerts of one site. */
export interface SiteAlerts {
  /** Null: access points without a site. */
  site: string | null;
  counts: Readonly<Record<Severity, number>>;
  /** The most severe first, and of these the newest first. */
  alerts: readonly Alert[];
}

const collator = new Intl.Collator("en", { numeric: true });
const rankOf = ({ severity }: Pick<Alert, "severity">): number => BY_SEVERITY.indexOf(severity);

/** Groups alerts by site. Sites with the most severe alerts come first, then those with the most of them, then by name. */
export function bySite(alerts: readonly Alert[]): SiteAlerts[] {
  const groups = [...Map.groupBy(alerts, ({ labels }) => labels.site ?? null)].map(([site, ofSite]): SiteAlerts => {
    const counts = { info: 0, warning: 0, critical: 0 };
    for (const { severity } of ofSite) counts[severity] += 1;
    return { site, counts, alerts: ofSite.toSorted(moreUrgent) };
  });
  return groups.sort((one, other) => {
    for (const severity of BY_SEVERITY) {
      const difference = other.counts[severity] - one.counts[severity];
      if (difference !== 0) return difference;
    }
    return collator.compare(one.site ?? "\uffff", other.site ?? "\uffff");
  });
}

function moreUrgent(one: Alert, other: Alert): number {
  return rankOf(one) - rankOf(other) || Date.parse(other.fired_at) - Date.parse(one.fired_at);
}

/** Returns the counts as a text: "2 critical, 1 warning". */
export const countsText = (counts: SiteAlerts["counts"]): string =>
  BY_SEVERITY.filter((severity) => counts[severity] > 0)
    .map((severity) => `${counts[severity]} ${severity}`)
    .join(", ");

/** What a silence may be about, for the alert from which it is created. The first choice is the narrowest. */
export function silenceChoices(alert: Pick<Alert, "ap_id" | "rule_id" | "rule" | "labels">): [string, string][] {
  const { ap_id, rule_id, rule, labels } = alert;
  const choices: [string, string][] = [];
  if (ap_id !== null) {
    choices.push([`ap_id=${ap_id},rule_id=${rule_id}`, `${rule}, for ${ap_id}`]);
    choices.push([`ap_id=${ap_id}`, `All alerts of ${ap_id}`]);
  }
  if (labels.site !== undefined) {
    choices.push([`site=${labels.site},rule_id=${rule_id}`, `${rule}, at ${labels.site}`]);
    choices.push([`site=${labels.site}`, `All alerts at ${labels.site}`]);
  }
  choices.push([`rule_id=${rule_id}`, `${rule}, everywhere`]);
  return choices.filter(([selector]) => isValid(selector));
}

/** A name may be longer than a value in a selector. */
function isValid(selector: string): boolean {
  try {
    parseSelector(selector);
    return true;
  } catch {
    return false;
  }
}

/** Returns the silence of an alert that ends last. The page does not resolve groups. */
export function silenceOf(
  { ap_id, rule_id, labels }: Pick<Alert, "ap_id" | "rule_id" | "labels">,
  silences: readonly Silence[],
): Silence | undefined {
  const selected = { ...labels, rule_id, ...(ap_id !== null && { ap_id }) };
  return silences
    .filter(({ selector }) => {
      const terms = isValid(selector) ? parseSelector(selector) : undefined;
      const conditions = terms?.flatMap((term) => (isGroup(term) ? [] : [term]));
      return conditions !== undefined && conditions.length === terms?.length && matches(conditions, selected);
    })
    .sort((one, other) => Date.parse(other.until) - Date.parse(one.until))[0];
}
