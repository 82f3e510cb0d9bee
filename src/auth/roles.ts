import type { GrantRole } from "./agent-scope.ts";

/** The scopes that each kind of account grants to its tokens. */

export const SCOPES = [
  "users:manage",
  "agents:read",
  "agents:manage",
  "agents:register",
  "apps:manage",
  "telemetry:read",
  "telemetry:write",
  "commands:send",
  "emulator:run",
  "callbacks:post",
  "broker:use",
  "audit:read",
  "service:read",
] as const;
export type Scope = (typeof SCOPES)[number];

export const ROLES = ["admin", "user"] as const;
export type Role = (typeof ROLES)[number];

/** Only what sends metrics needs these scopes. */
const SCOPES_OF_SENDERS: readonly Scope[] = ["telemetry:write", "agents:register"];

const SCOPES_OF_ROLE: Record<Role, readonly Scope[]> = {
  admin: SCOPES.filter((scope) => !SCOPES_OF_SENDERS.includes(scope)),
  user: ["agents:read", "telemetry:read", "commands:send", "emulator:run"],
};

export const SCOPES_OF_AGENT: readonly Scope[] = ["agents:read", "telemetry:read", "telemetry:write", "broker:use"];

/** The grants of an account. Null or undefined: it operates all agents. */
type Grants = readonly { role: GrantRole; selector: unknown }[] | null | undefined;

/** The role that a grant must have for a token scope. Other scopes do not concern agents. */
export const ROLE_OF_SCOPE: Partial<Record<Scope, GrantRole>> = {
  "agents:read": "viewer",
  "telemetry:read": "viewer",
  "telemetry:write": "viewer",
  "agents:register": "viewer",
  "commands:send": "operator",
  "emulator:run": "operator",
  "agents:manage": "manager",
};

/** Returns the scopes that a user's roles and grants give. Grants do not limit administrators. */
export function scopesOfUser(roles: readonly Role[], grants?: Grants): Scope[] {
  const ofRoles = SCOPES.filter((scope) => roles.some((role) => SCOPES_OF_ROLE[role].includes(scope)));
  return roles.includes("admin") ? ofRoles : withGrants(ofRoles, grants);
}

/**
 * Adds the scope of managers, and removes the emulator from accounts that may only read. An account without any grant keeps it: visitors
 * try the product with access points of their own.
 */
function withGrants(scopes: readonly Scope[], grants: Grants): Scope[] {
  if (grants === undefined || grants === null) return [...scopes];
  const canManage = grants.some(({ role }) => role === "manager");
  const isViewer = grants.length > 0 && grants.every(({ role }) => role === "viewer");
  return SCOPES.filter((scope) => {
    if (scope === "agents:manage") return canManage;
    return scopes.includes(scope) && !(isViewer && scope === "emulator:run");
  });
}

/** The permissions of an app and the scopes that they grant. `byDefault` applies if an app does not set the permission. */
const APP_PERMISSIONS = [
  { permission: "agents", scope: "agents:read", byDefault: true },
  { permission: "data", scope: "telemetry:read", byDefault: true },
  { permission: "commands", scope: "commands:send", byDefault: true },
  { permission: "emulator", scope: "emulator:run", byDefault: true },
  { permission: "callbacks", scope: "callbacks:post", byDefault: false },
  { permission: "broker", scope: "broker:use", byDefault: false },
  { permission: "write", scope: "telemetry:write", byDefault: false },
  { permission: "register", scope: "agents:register", byDefault: false },
] as const;

type AppPermission = (typeof APP_PERMISSIONS)[number]["permission"];

/** Returns the scopes of an app. The broker gives access to the topics of all agents, so an app that is limited may not use it. */
export function scopesOfApp(
  permissions: Partial<Record<AppPermission, boolean | undefined>> & { ap_ids?: readonly string[] | undefined },
  grants?: Grants,
): Scope[] {
  const isLimited = permissions.ap_ids !== undefined || !(grants?.some(isForAll) ?? true);
  const scopes = APP_PERMISSIONS.filter(({ permission, byDefault }) => permissions[permission] ?? byDefault)
    .map(({ scope }) => scope)
    .filter((scope) => !(isLimited && scope === "broker:use"));
  return withGrants(scopes, grants);
}

/** Whether a grant is for all agents. An empty selector selects all, as text and as conditions. */
const isForAll = ({ selector }: { selector: unknown }): boolean =>
  (typeof selector === "string" && selector.trim() === "") || (Array.isArray(selector) && selector.length === 0);
