import type { EventType, NetworkEvent, Severity } from "../../../schemas/events.ts";
import { own } from "../../lib/format.ts";

/** Events as texts for people. */

/** Also the list of all types: the compiler finds a missing one. */
export const EVENT_TEXTS: Record<EventType, string> = {
  "agent.registered": "Registered",
  "agent.onboarded": "First login",
  "agent.updated": "Changed",
  "agent.relabelled": "Labels changed",
  "agent.deleted": "Deleted",
  "agent.online": "Online",
  "agent.offline": "Offline",
  "command.issued": "Command sent",
  "command.answered": "Command answered",
  "command.expired": "Command expired",
  "command.cancelled": "Command cancelled",
  "job.started": "Job started",
  "job.ended": "Job ended",
  "emulation.started": "Emulation started",
  "emulation.ended": "Emulation ended",
  "alert.fired": "Alert fired",
  "alert.resolved": "Alert resolved",
  "alert.acknowledged": "Alert acknowledged",
  "login.failing": "Logins fail",
  "account.created": "Account created",
  "account.updated": "Account changed",
  "account.deleted": "Account deleted",
  "grants.changed": "Access changed",
  "group.changed": "Group changed",
  "enrolment_token.changed": "Enrolment token changed",
  "component.down": "Component down",
  "component.up": "Component up",
  "subscription.failing": "Notification stopped",
  "subscription.test": "Notification tested",
};

export const EVENT_TYPES = Object.keys(EVENT_TEXTS) as EventType[];

/** Types by their subject, for lists of choices. */
export const EVENT_SUBJECTS: readonly (readonly [subject: string, prefixes: readonly string[]])[] = [
  ["Alerts", ["alert"]],
  ["Access points", ["agent"]],
  ["Commands", ["command"]],
  ["Jobs and emulations", ["job", "emulation"]],
  ["Accounts", ["account", "grants", "group", "enrolment_token", "login"]],
  ["The service", ["component", "subscription"]],
];

export const SEVERITY_TEXTS: Record<Severity, string> = { info: "Info", warning: "Warning", critical: "Critical" };
/** From the most to the least severe. */
export const BY_SEVERITY: readonly Severity[] = ["critical", "warning", "info"];

/** Returns the type of an event in words. A newer service may have types that this page does not know. */
export const eventText = (type: string): string => own(EVENT_TEXTS, type) ?? type;

const OUTCOMES: Record<string, string> = {
  done: "done",
  failed: "failed",
  expired: "no answer in time",
  cancelled: "cancelled",
  removed: "removed",
};

/** Returns what an event's data add to its type, in one line. */
export function eventDetail({ type, data }: Pick<NetworkEvent, "type" | "data">): string {
  const text = (key: string): string | undefined => (typeof data[key] === "string" ? data[key] : undefined);
  const outcome = own(OUTCOMES, text("outcome") ?? "");
  if (type.startsWith("alert.")) return text("text") ?? text("rule") ?? "";
  if (type.startsWith("command.")) return [quoted(text("command")), outcome].filter(Boolean).join(": ");
  if (type === "agent.relabelled") return labelsText(data.labels);
  if (type.startsWith("job.") || type.startsWith("emulation.")) return outcome ?? text("kind") ?? "";
  return text("account") ?? text("component") ?? text("group") ?? text("object") ?? text("action") ?? "";
}

const quoted = (text: string | undefined): string | undefined => (text === undefined ? undefined : `“${text}”`);

function labelsText(labels: unknown): string {
  if (typeof labels !== "object" || labels === null) return "";
  return Object.entries(labels)
    .map(([key, value]) => (value === null ? `${key} removed` : `${key}=${String(value)}`))
    .join(", ");
}
