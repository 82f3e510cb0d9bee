import { NotAllowed } from "../errors.ts";

/** Who may do what. All of it is data; what is not written here is denied. */

/** Tokens that are no accounts' but open one door each. */
export const DOORS = ["setup", "enrolment", "scraper"] as const;
export type Door = (typeof DOORS)[number];

/** Kinds of caller. */
export type CallerKind = "admin" | "user" | "agent" | "app" | Door;

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

/** Who calls. */
export interface Identity {
  kind: CallerKind;
  /** The account's own: a later account of the same name has another one. */
  id: string;
  /** Username, ap_id or app_name. */
  name: string;
  /** Of the account, as its token says. */
  version: number;
  /** When the token ends. */
  expiresAtMs: number;
  roles: readonly Role[];
  /** What the caller's token carries. */
  scopes: ReadonlySet<string>;
  /** Whether that is all that the account grants: the token was not narrowed. */
  isWhole: boolean;
  /** The only agents that an app may touch; absent: all. */
  apIds?: readonly string[] | undefined;
}

/** Who calls, and in which request; the audit trail names both. */
export interface Actor extends Identity {
  requestId: string;
}

/**
 * The scope that a caller's token must carry; `free` where none is needed; `whole` for what gives full power over an account, which
 * a narrowed token must not regain.
 */
type Needs = Scope | "free" | "whole";

interface Row {
  /** Callers that may do it to any object. */
  any?: Partial<Record<CallerKind, Needs>>;
  /** Callers that may do it to themselves only. */
  own?: Partial<Record<CallerKind, Needs>>;
}

const PUBLIC = "public";

const OF_JOBS = {
  any: { admin: "telemetry:read" },
  own: { admin: "free", user: "free", agent: "free", app: "free" },
} as const satisfies Row;
/** An agent's own are those that are about it. */
const CALLBACK = {
  any: { admin: "callbacks:post", app: "callbacks:post" },
  own: { admin: "free", user: "free", agent: "telemetry:write", app: "free" },
} as const satisfies Row;

/** The permission matrix: every operation of the interface, and who may call it. An operation cannot be declared without a row. */
const matrix = {
  "service.health": PUBLIC,
  "service.ready": PUBLIC,
  "service.openapi": PUBLIC,
  "service.asyncapi": PUBLIC,
  "service.docs": PUBLIC,
  "service.keys": PUBLIC,
  "service.dashboard": PUBLIC,
  "service.metrics": { any: { admin: "service:read", scraper: "free" } },

  "token.create": PUBLIC,

  "users.signup": PUBLIC,
  "users.recover": PUBLIC,
  "users.reset": PUBLIC,
  "users.set_up": { any: { admin: "users:manage", setup: "free" } },
  "users.list": { any: { admin: "users:manage" } },
  "users.create": { any: { admin: "users:manage" } },
  "users.me": { own: { admin: "free", user: "free" } },
  "users.read": { any: { admin: "users:manage" }, own: { user: "free" } },
  "users.update": { any: { admin: "users:manage" }, own: { user: "whole" } },
  "users.change_roles": { any: { admin: "users:manage" } },
  "users.delete": { any: { admin: "users:manage" }, own: { user: "whole" } },

  "agents.enrol": { any: { admin: "agents:manage", enrolment: "free" } },
  "agents.create": { any: { admin: "agents:manage" } },
  "agents.read": {
    any: { admin: "agents:read", user: "agents:read", app: "agents:read" },
    own: { agent: "agents:read" },
  },
  "agents.update": { any: { admin: "agents:manage" }, own: { agent: "telemetry:write" } },
  "agents.change_password": { any: { admin: "agents:manage" }, own: { agent: "whole" } },
  "agents.delete": { any: { admin: "agents:manage" } },

  "agents.list": { any: { admin: "agents:read", user: "agents:read", app: "agents:read" } },
  // It lists the agents, too: whoever may not do that does not get it either.
  "agents.overview": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },

  "telemetry.report": { own: { agent: "telemetry:write" } },
  "telemetry.deliver": { any: { app: "broker:use" } },
  "telemetry.read": {
    any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" },
    own: { agent: "telemetry:read" },
  },

  "apps.list": { any: { admin: "apps:manage" } },
  "apps.create": { any: { admin: "apps:manage" } },
  "apps.read": { any: { admin: "apps:manage" }, own: { app: "whole" } },
  "apps.update": { any: { admin: "apps:manage" } },
  "apps.delete": { any: { admin: "apps:manage" } },

  "commands.send": { any: { admin: "commands:send", user: "commands:send", app: "commands:send" } },
  "commands.send_many": { any: { admin: "commands:send", user: "commands:send", app: "commands:send" } },

  "emulator.spin_up": { any: { admin: "emulator:run", user: "emulator:run", app: "emulator:run" } },
  "emulator.places": { any: { admin: "emulator:run", user: "emulator:run", app: "emulator:run" } },
  "emulator.list": OF_JOBS,
  "emulator.remove": OF_JOBS,

  "jobs.request_details": { any: { admin: "agents:read", user: "agents:read", app: "agents:read" } },
  "jobs.request_data": {
    any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" },
    own: { agent: "telemetry:read" },
  },
  // One's own jobs, whatever the token is narrowed to; what the answer is made of has rows of its own.
  "jobs.list": OF_JOBS,
  "jobs.read": OF_JOBS,
  "jobs.cancel": OF_JOBS,
  "jobs.stream": OF_JOBS,
  "jobs.stream_agent_data": OF_JOBS,
  "jobs.stream_agent_details": OF_JOBS,
  "jobs.stream_emulator": OF_JOBS,
  "callbacks.agent_data": CALLBACK,
  "callbacks.agent_details": CALLBACK,
  "callbacks.emulator": CALLBACK,
  "callbacks.command": CALLBACK,

  "audit.list": { any: { admin: "audit:read" } },
} as const satisfies Record<string, typeof PUBLIC | Row>;

export type Action = keyof typeof matrix;

export const isPublic = (action: Action): boolean => matrix[action] === PUBLIC;

function rowOf(action: Action): Row {
  const row = matrix[action];
  return row === PUBLIC ? {} : row;
}

/** For the documentation: the kinds of caller, and whether they reach themselves only. */
export function callersOf(action: Action): string[] {
  const { any = {}, own = {} } = rowOf(action);
  return [...Object.keys(any), ...Object.keys(own).map((kind) => `${kind} (itself)`)];
}

function reachOf(actor: Identity, action: Action): "any" | "own" | undefined {
  const { any = {}, own = {} } = rowOf(action);
  const carries = (needs: Needs | undefined): boolean => {
    if (needs === "whole") return actor.isWhole;
    return needs === "free" || (needs !== undefined && actor.scopes.has(needs));
  };
  if (carries(any[actor.kind])) return "any";
  return carries(own[actor.kind]) ? "own" : undefined;
}

/** Whether the caller may do this at all, whatever to. */
export function allow(actor: Identity, action: Action): void {
  if (reachOf(actor, action) === undefined) throw new NotAllowed();
}

/** Whether the caller may do this to the account of that name. Asked before the account is looked up, so that a no tells nothing. */
export function allowOn(actor: Identity, action: Action, name: string): void {
  const reach = reachOf(actor, action);
  const itself = actor.name === name;
  if (reach === undefined || (reach === "own" && !itself)) throw new NotAllowed();
}

/** As `allowOn`, for an agent: an app may be limited to some of them. */
export function allowOnAgent(actor: Identity, action: Action, apId: string): void {
  allowOn(actor, action, apId);
  if (actor.apIds !== undefined && !actor.apIds.includes(apId)) throw new NotAllowed();
}

/** Whether the caller may do this to anybody's job. */
export const reachesAnyJob = (actor: Identity, action: Action): boolean => reachOf(actor, action) === "any";

/** As `allowOn`, for a job: its owner's, and for callbacks also those of the agent that it is about. */
export function allowOnJob(actor: Identity, action: Action, job: { ownerId: string; target: string | null }): void {
  const reach = reachOf(actor, action);
  const isOwner = job.ownerId === actor.id;
  const isTarget = action.startsWith("callbacks.") && actor.kind === "agent" && job.target === actor.name;
  if (reach === undefined || (reach === "own" && !isOwner && !isTarget)) throw new NotAllowed();
}

// What an account's token may carry at the most.

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

/** Each permission of an app, the scope that it grants, and whether an app has it that says nothing of it. */
const APP_PERMISSIONS = [
  { permission: "agents", scope: "agents:read", byDefault: true },
  { permission: "data", scope: "telemetry:read", byDefault: true },
  { permission: "commands", scope: "commands:send", byDefault: true },
  { permission: "emulator", scope: "emulator:run", byDefault: true },
  { permission: "callbacks", scope: "callbacks:post", byDefault: false },
  { permission: "broker", scope: "broker:use", byDefault: false },
] as const;

export type AppPermission = (typeof APP_PERMISSIONS)[number]["permission"];

export function scopesOfApp(permissions: Partial<Record<AppPermission, boolean | undefined>>): Scope[] {
  return APP_PERMISSIONS.filter(({ permission, byDefault }) => permissions[permission] ?? byDefault).map(
    ({ scope }) => scope,
  );
}
