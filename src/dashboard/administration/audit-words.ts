import { own } from "../own.ts";

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
  "spin up": "started emulated access points",
  "remove emulated agents": "removed emulated access points",
};

const KINDS: { [kind: string]: string } = {
  admin: "administrator",
  agent: "access point",
  app: "app",
  console: "at the console",
  enrolment: "with the enrolment token",
  job: "job",
  service: "the service itself",
  setup: "with the setup token",
  user: "user",
};

/** Several at once are joined by "and"; one that is not known here speaks for itself. */
export function deedText(action: string): string {
  const text = action
    .split(" and ")
    .map((deed) => own(DEEDS, deed) ?? deed)
    .join(" and ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `user:me@example.com` is a name, and what bears it. */
export function partyOf(text: string): { name: string; kind: string } {
  const at = text.indexOf(":");
  if (at < 0) return { name: text, kind: text === "anyone" ? "not signed in" : "" };
  const kind = text.slice(0, at);
  return { name: text.slice(at + 1), kind: own(KINDS, kind) ?? kind };
}
