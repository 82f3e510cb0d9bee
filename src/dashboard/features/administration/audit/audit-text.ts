import type { AuditEntry } from "../../../../schemas/accounts/audit.ts";
import { own } from "../../../lib/format.ts";

/** The audit trail as text for people. */

const ACTIONS: { [action: string]: string } = {
  create: "created",
  delete: "deleted",
  configure: "changed the configuration",
  "change password": "changed the password",
  "change roles": "changed the roles",
  "change api key": "changed the key",
  "change permissions": "changed the permissions",
  "change grants": "changed the access",
  label: "changed labels",
  change: "changed",
  revoke: "revoked",
  "request password reset": "requested a link to set a new password",
  "reset password": "set a new password with a link",
  "repeated failed logins": "failed to sign in repeatedly",
  "send command": "sent a command",
  "command done": "carried out a command",
  "command failed": "failed to carry out a command",
  "command expired": "ended a command without a result",
  "command cancelled": "cancelled a command",
  "emulation done": "completed an emulation",
  "emulation failed": "reported a failed emulation",
  "emulation expired": "ended an emulation that did not start",
  "emulation cancelled": "stopped an emulation",
  "spin up": "started emulated access points",
  "remove emulated agents": "removed emulated access points",
};

const KINDS: { [kind: string]: string } = {
  address: "address",
  admin: "administrator",
  agent: "access point",
  agents: "several access points",
  anyone: "not signed in",
  app: "app",
  console: "command line",
  enrolment: "enrolment token",
  enrolment_token: "enrolment token",
  group: "group",
  job: "job",
  service: "the service",
  setup: "setup token",
  user: "user",
};

/** Describes an action, or several that are joined by "and". Returns an unknown action as it is. */
export function describeAction(action: string): string {
  const text = action
    .split(" and ")
    .map((single) => own(ACTIONS, single) ?? single)
    .join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Describes the detail of an entry: the command, the number of access points, or why the service rejected it. */
export function detailText(detail: AuditEntry["detail"]): string {
  const { command, access_points: count, outcome, reason, agents, refused } = detail ?? {};
  const names = Array.isArray(refused) ? refused.map((one: { ap_id?: unknown }) => String(one.ap_id)) : [];
  const more = typeof agents === "number" ? agents - names.length : 0;
  return [
    typeof command === "string" && `“${command}”`,
    typeof count === "number" && `${count} access points`,
    typeof count === "string" && count,
    outcome === "refused" && (typeof reason === "string" ? `refused: ${reason}` : "refused"),
    names.length > 0 && `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`,
  ]
    .filter((text) => text !== false)
    .join(" – ");
}

/** Splits the identifier of an actor or a target, such as `user:me@example.com`, into its name and its kind. */
export function parseIdentifier(text: string): { name: string; kind: string } {
  const colon = text.indexOf(":");
  if (colon < 0) return { name: text, kind: own(KINDS, text) ?? "" };
  const kind = text.slice(0, colon);
  return { name: text.slice(colon + 1), kind: own(KINDS, kind) ?? kind };
}
