import type { Subscription, TargetKind } from "../../../schemas/subscriptions.ts";
import { countOf } from "../../lib/format.ts";
import { EVENT_TYPES, eventText, SEVERITY_TEXTS } from "../events/event-text.ts";

/** Subscriptions in words. */

export const TARGET_TEXTS: Record<TargetKind, string> = {
  email: "E-mail",
  webhook: "Webhook",
  mqtt: "MQTT topic",
  alertmanager: "Alertmanager",
};

const MAX_NAMED = 3;

/** Describes which events a subscription is for: "Alert fired, Alert resolved · from Warning · site=uk/*". */
export function filterText({ types, selector, severity }: Subscription["filter"]): string {
  const named = types.slice(0, MAX_NAMED).map(eventText).join(", ");
  const isAll = types.length === 0 || types.length === EVENT_TYPES.length;
  const more = types.length - MAX_NAMED;
  return [
    isAll ? "All events" : more > 0 ? `${named} and ${more} more` : named,
    severity === "info" ? "" : severity === "critical" ? "only Critical" : `${SEVERITY_TEXTS[severity]} and above`,
    selector,
  ]
    .filter((text) => text !== "")
    .join(" · ");
}

export type DeliveryState = "stopped" | "failing" | "working" | "new";

/** Returns how the delivery goes. */
export function deliveryState(subscription: Subscription): DeliveryState {
  if (subscription.stopped_at !== null) return "stopped";
  if (subscription.failing_since !== null) return "failing";
  return subscription.delivered_at === null ? "new" : "working";
}

/** Describes the number of events that wait. */
export const backlogText = (backlog: number): string =>
  backlog === 0 ? "Nothing waits" : `${countOf(backlog, "event")} ${backlog === 1 ? "waits" : "wait"}`;
