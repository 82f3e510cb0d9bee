/** The scopes that each kind of account grants to its tokens. */

export const SCOPES = [
  "users:manage",
  "agents:read",
  "agents:manage",
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

const SCOPES_OF_ROLE: Record<Role, readonly Scope[]> = {
  admin: SCOPES.filter((scope) => scope !== "telemetry:write"),
  user: ["agents:read", "telemetry:read", "commands:send", "emulator:run"],
};

export const SCOPES_OF_AGENT: readonly Scope[] = ["agents:read", "telemetry:read", "telemetry:write", "broker:use"];

export function scopesOfRoles(roles: readonly Role[]): Scope[] {
  return SCOPES.filter((scope) => roles.some((role) => SCOPES_OF_ROLE[role].includes(scope)));
}

/** The permissions of an app and the scopes that they grant. `byDefault` applies if an app does not set the permission. */
const APP_PERMISSIONS = [
  { permission: "agents", scope: "agents:read", byDefault: true },
  { permission: "data", scope: "telemetry:read", byDefault: true },
  { permission: "commands", scope: "commands:send", byDefault: true },
  { permission: "emulator", scope: "emulator:run", byDefault: true },
  { permission: "callbacks", scope: "callbacks:post", byDefault: false },
  { permission: "broker", scope: "broker:use", byDefault: false },
] as const;

type AppPermission = (typeof APP_PERMISSIONS)[number]["permission"];

export function scopesOfApp(permissions: Partial<Record<AppPermission, boolean | undefined>>): Scope[] {
  return APP_PERMISSIONS.filter(({ permission, byDefault }) => permissions[permission] ?? byDefault).map(
    ({ scope }) => scope,
  );
}
