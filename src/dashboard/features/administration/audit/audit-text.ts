import type { AuditEntry } from "../../../../schemas/audit.ts";
import { own } from "../../../lib/own.ts";

/** The audit trail in plain words. */

const DEEDS: { [action: string]: string } = {
  create: "created",
  delete: "deleted",
  configure: "changed the configuration",
  "change password": "changed the password",
  "change roles": "changed the roles",
  "change api key": "changed the key",
  "change permissions": "changed the permissions",
  "request password reset": "asked for a link to set a new password",
  "reset password": "set a new password with a link",
  "send command": "sent a command",
  "command done": "carried out a command",
  "command failed": "failed to carry out a command",
  "command expired": "ended a command without an answer",
  "command cancelled": "cancelled a command",
  "emulation done": "completed an emulation",
  "emulation failed": "reported a failed emulation",
  "emulation expired": "ended an emulation that did not start",
  "emulation cancelled": "stopped an emulation",
  "spin up": "started emulated access points",
  "remove emulated agents": "removed emulated access points",
};

const KINDS: { [kind: string]: string } = {
  admin: "administrator",
  agent: "access point",
  agents: "several access points",
  anyone: "not signed in",
  app: "app",
  console: "at the console",
  enrolment: "with the enrolment token",
  job: "job",
  service: "the service itself",
  setup: "with the setup token",
  user: "user",
};

/** Several at once are joined by "and"; one that is not known here speaks for itself. */
export function describeAction(action: string): string {
  const text = action
    .split(" and ")
    .map((deed) => own(DEEDS, deed) ?? deed)
    .join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns what an entry says beyond its action: which command, how many access points, why it was refused. */
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
    .filter((part) => part !== false)
    .join(" – ");
}

/** `user:me@example.com` is a name, and what bears it. */
export function parseActor(text: string): { name: string; kind: string } {
  const at = text.indexOf(":");
  if (at < 0) return { name: text, kind: own(KINDS, text) ?? "" };
  const kind = text.slice(0, at);
  return { name: text.slice(at + 1), kind: own(KINDS, kind) ?? kind };
}
