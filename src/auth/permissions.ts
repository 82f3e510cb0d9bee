import { NotAllowed } from "../lib/errors.ts";
import type { CallerKind, Identity } from "./identity.ts";
import type { Scope } from "./roles.ts";

/** Who may do what. All of it is data; what is not written here is denied. */

/**
 * The scope that a caller's token must carry; `none` where none is needed; `full_scope` for what gives full power over an account, which
 * a narrowed token must not regain.
 */
type Requirement = Scope | "none" | "full_scope";

interface Row {
  /** Callers that may do it to any object. */
  any?: Partial<Record<CallerKind, Requirement>>;
  /** Callers that may do it to themselves only. */
  own?: Partial<Record<CallerKind, Requirement>>;
}

const PUBLIC = "public";

const OF_JOBS = {
  any: { admin: "telemetry:read" },
  own: { admin: "none", user: "none", agent: "none", app: "none" },
} as const satisfies Row;
/** An agent's own are those that are about it. */
const CALLBACK = {
  any: { admin: "callbacks:post", app: "callbacks:post" },
  own: { admin: "none", user: "none", agent: "telemetry:write", app: "none" },
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
  "service.metrics": { any: { admin: "service:read", scraper: "none" } },

  "token.create": PUBLIC,

  "users.signup": PUBLIC,
  "users.recover": PUBLIC,
  "users.reset": PUBLIC,
  "users.set_up": { any: { admin: "users:manage", setup: "none" } },
  "users.list": { any: { admin: "users:manage" } },
  "users.create": { any: { admin: "users:manage" } },
  "users.me": { own: { admin: "none", user: "none" } },
  "users.read": { any: { admin: "users:manage" }, own: { user: "none" } },
  "users.update": { any: { admin: "users:manage" }, own: { user: "full_scope" } },
  "users.change_roles": { any: { admin: "users:manage" } },
  "users.delete": { any: { admin: "users:manage" }, own: { user: "full_scope" } },

  "agents.enrol": { any: { admin: "agents:manage", enrolment: "none" } },
  "agents.create": { any: { admin: "agents:manage" } },
  "agents.read": {
    any: { admin: "agents:read", user: "agents:read", app: "agents:read" },
    own: { agent: "agents:read" },
  },
  "agents.update": { any: { admin: "agents:manage" }, own: { agent: "telemetry:write" } },
  "agents.change_password": { any: { admin: "agents:manage" }, own: { agent: "full_scope" } },
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
  "apps.read": { any: { admin: "apps:manage" }, own: { app: "full_scope" } },
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

function grantFor(actor: Identity, action: Action): "any" | "own" | undefined {
  const { any = {}, own = {} } = rowOf(action);
  const carries = (needs: Requirement | undefined): boolean => {
    if (needs === "full_scope") return actor.hasFullScope;
    return needs === "none" || (needs !== undefined && actor.scopes.has(needs));
  };
  if (carries(any[actor.kind])) return "any";
  return carries(own[actor.kind]) ? "own" : undefined;
}

/** Whether the caller may do this at all, whatever to. */
export function authorize(actor: Identity, action: Action): void {
  if (grantFor(actor, action) === undefined) throw new NotAllowed();
}

/** Whether the caller may do this to the account of that name. Asked before the account is looked up, so that a no tells nothing. */
export function authorizeAccount(actor: Identity, action: Action, name: string): void {
  const reach = grantFor(actor, action);
  const itself = actor.name === name;
  if (reach === undefined || (reach === "own" && !itself)) throw new NotAllowed();
}

/** As `authorizeAccount`, for an agent: an app may be limited to some of them. */
export function authorizeAgent(actor: Identity, action: Action, apId: string): void {
  authorizeAccount(actor, action, apId);
  if (actor.apIds !== undefined && !actor.apIds.includes(apId)) throw new NotAllowed();
}

/** Whether the caller may do this to anybody's job. */
export const canAccessAnyJob = (actor: Identity, action: Action): boolean => grantFor(actor, action) === "any";

/** As `authorizeAccount`, for a job: its owner's, and for callbacks also those of the agent that it is about. */
export function authorizeJob(actor: Identity, action: Action, job: { ownerId: string; target: string | null }): void {
  const reach = grantFor(actor, action);
  const isOwner = job.ownerId === actor.id;
  const isTarget = action.startsWith("callbacks.") && actor.kind === "agent" && job.target === actor.name;
  if (reach === undefined || (reach === "own" && !isOwner && !isTarget)) throw new NotAllowed();
}
