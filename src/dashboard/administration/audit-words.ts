/** The audit trail in plain words. */

const DEEDS: { [action: string]: string } = {
  create: "Created",
  delete: "Deleted",
  configure: "Changed the configuration",
  "change password": "Changed the password",
  "change roles": "Changed the roles",
  "change api key": "Changed the key",
  "change permissions": "Changed the permissions",
  "request password reset": "Asked for a link to set a new password",
  "reset password": "Set a new password with a link",
  "spin up": "Started emulated access points",
  "remove emulated agents": "Removed emulated access points",
};

const KINDS: { [kind: string]: string } = {
  admin: "administrator",
  agent: "access point",
  app: "app",
  console: "at the console",
  enrolment: "with the enrolment token",
  job: "job",
  setup: "with the setup token",
  user: "user",
};

/** Several at once are joined by "and"; one that is not known here speaks for itself. */
export const deedText = (action: string): string =>
  action
    .split(" and ")
    .map((deed) => DEEDS[deed] ?? deed)
    .join("; ");

/** `user:me@example.com` is a name, and what bears it. */
export function partyOf(text: string): { name: string; kind: string } {
  const at = text.indexOf(":");
  if (at < 0) return { name: text, kind: text === "anyone" ? "not signed in" : "" };
  const kind = text.slice(0, at);
  return { name: text.slice(at + 1), kind: KINDS[kind] ?? kind };
}
