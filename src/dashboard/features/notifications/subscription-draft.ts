import type { EventType, Severity } from "../../../schemas/events.ts";
import type { Subscription, TargetKind } from "../../../schemas/subscriptions.ts";
import type { NewSubscriptionInput, SubscriptionChange } from "../../api/subscription-calls.ts";

/** A subscription in a form. */
export interface SubscriptionDraft {
  name: string;
  types: readonly EventType[];
  selector: string;
  severity: Severity;
  kind: TargetKind;
  /** A URL, or an e-mail address. Empty: the user's own address. */
  address: string;
}

/** Most people want to know of alerts. */
const ALERT_TYPES: readonly EventType[] = ["alert.fired", "alert.resolved"];

export const newSubscription = (): SubscriptionDraft => ({
  name: "",
  types: ALERT_TYPES,
  selector: "",
  severity: "info",
  kind: "email",
  address: "",
});

export const toSubscriptionDraft = ({ name, filter, target }: Subscription): SubscriptionDraft => ({
  ...{ name, types: filter.types, selector: filter.selector, severity: filter.severity },
  ...{ kind: target.kind, address: target.kind === "mqtt" ? "" : target.address },
});

export const hasUrl = (kind: TargetKind): boolean => kind === "webhook" || kind === "alertmanager";

const filterIn = ({ types, selector, severity }: SubscriptionDraft) => ({
  types: [...types],
  selector: selector.trim(),
  severity,
});

function targetIn({ kind, address }: SubscriptionDraft): NewSubscriptionInput["target"] {
  const trimmed = address.trim();
  if (kind === "mqtt") return { kind };
  if (kind === "email") return trimmed === "" ? { kind } : { kind, address: trimmed };
  return { kind, address: trimmed };
}

export const subscriptionIn = (draft: SubscriptionDraft): NewSubscriptionInput => ({
  ...{ name: draft.name.trim(), filter: filterIn(draft), target: targetIn(draft) },
});

/** Returns what changes. The address is sent only if it is a new one: the service does not return its credentials. */
export const subscriptionChange = (draft: SubscriptionDraft, { target }: Subscription): SubscriptionChange => ({
  ...{ name: draft.name.trim(), filter: filterIn(draft) },
  ...(draft.kind !== "mqtt" && draft.address.trim() !== target.address && { target: targetIn(draft) }),
});
