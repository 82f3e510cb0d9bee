import { NotAllowed, NotFound } from "../lib/errors.ts";
import { type AgentScope, ALL_AGENTS, isInScope, type ScopedAgent, scopeOfGrants } from "./agent-scope.ts";
import type { CallerKind, Identity } from "./identity.ts";
import { ROLE_OF_SCOPE, type Scope } from "./roles.ts";

/** The permission matrix as data. Anything that it does not list is denied. */

/**
 * The scope that the caller's token must have. `none`: no scope is needed. `full_scope`: the token must have all scopes of its account,
 * because the operation gives full control of the account, which a token with fewer scopes must not gain.
 */
type Requirement = Scope | "none" | "full_scope";

interface Row {
  /** Callers that may access any object. */
  any?: Partial<Record<CallerKind, Requirement>>;
  /** Callers that may access their own objects only. */
  own?: Partial<Record<CallerKind, Requirement>>;
}

const PUBLIC = "public";

/** Callers have access to their own jobs with any scope. Other rows of the matrix cover the data that a job returns. */
const OF_JOBS = {
  any: { admin: "telemetry:read" },
  own: { admin: "none", user: "none", agent: "none", app: "none" },
} as const satisfies Row;
/** An agent may post callbacks for jobs about itself. */
const CALLBACK = {
  any: { admin: "callbacks:post", app: "callbacks:post" },
  own: { admin: "none", user: "none", agent: "telemetry:write", app: "none" },
} as const satisfies Row;

/** Grants decide for which agents users and apps may do this. Only a manager's token has the second scope. */
const VIEWERS = { any: { admin: "agents:read", user: "agents:read", app: "agents:read" } } as const satisfies Row;
const OPERATORS = {
  any: { admin: "commands:send", user: "commands:send", app: "commands:send" },
} as const satisfies Row;
const MANAGERS = {
  any: { admin: "agents:manage", user: "agents:manage", app: "agents:manage" },
} as const satisfies Row;

/** An agent writes its own metrics. An app writes those of the agents that it sees. */
const WRITERS = {
  any: { app: "telemetry:write" },
  own: { agent: "telemetry:write" },
} as const satisfies Row;

/** The owner's grants decide which events a subscription gets. */
const OF_SUBSCRIPTIONS = {
  any: { admin: "users:manage" },
  own: { admin: "agents:read", user: "agents:read", app: "agents:read" },
} as const satisfies Row;

/** Every operation of the API and its callers. A route cannot be declared without a row. */
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
  // RabbitMQ has no credentials of its own. It passes on those of its clients.
  "broker.authorize": PUBLIC,

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
  "users.read_grants": { any: { admin: "users:manage" }, own: { user: "none" } },
  "users.change_grants": { any: { admin: "users:manage" } },
  "users.delete": { any: { admin: "users:manage" }, own: { user: "full_scope" } },

  "agents.enrol": { any: { admin: "agents:manage", enrolment: "none" } },
  "enrolment_tokens.list": MANAGERS,
  "enrolment_tokens.create": MANAGERS,
  "enrolment_tokens.revoke": MANAGERS,
  "agents.create": MANAGERS,
  "agents.read": {
    any: { admin: "agents:read", user: "agents:read", app: "agents:read" },
    own: { agent: "agents:read" },
  },
  "agents.update": { ...MANAGERS, own: { agent: "telemetry:write" } },
  "agents.change_password": { ...MANAGERS, own: { agent: "full_scope" } },
  "agents.delete": MANAGERS,

  "agents.list": VIEWERS,
  // The response also lists the agents: the overview additionally requires `agents.list`.
  "agents.overview": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },

  "labels.list": VIEWERS,
  "labels.update": MANAGERS,
  "labels.update_many": MANAGERS,
  "labels.export": VIEWERS,
  "labels.import": MANAGERS,
  "groups.list": VIEWERS,
  "groups.read": VIEWERS,
  "groups.save": { any: { admin: "users:manage" } },
  "groups.delete": { any: { admin: "users:manage" } },

  "telemetry.report": { own: { agent: "telemetry:write" } },
  "telemetry.deliver": { any: { app: "broker:use" } },
  "telemetry.write_prometheus": WRITERS,
  "telemetry.write_otlp": WRITERS,
  "telemetry.write_influx": WRITERS,
  "telemetry.write_openwisp": WRITERS,
  // No operation of its own: a write registers the agents that do not exist.
  "agents.register": { any: { app: "agents:register" } },
  "telemetry.read": {
    any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" },
    own: { agent: "telemetry:read" },
  },
  "telemetry.aggregate": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },
  // The responses name agents: they additionally require `agents.list`.
  "telemetry.remote_read": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },
  "telemetry.export": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },
  "telemetry.download": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },

  // The response names agents: it additionally requires `agents.list`.
  "alerts.test": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },
  "alert_rules.list": VIEWERS,
  "alert_rules.read": VIEWERS,
  "alert_rules.create": { any: { admin: "agents:manage" } },
  "alert_rules.replace": { any: { admin: "agents:manage" } },
  "alert_rules.delete": { any: { admin: "agents:manage" } },
  "alerts.list": VIEWERS,
  "alerts.acknowledge": OPERATORS,
  "silences.list": VIEWERS,
  "silences.create": OPERATORS,
  "silences.delete": OPERATORS,

  "apps.list": { any: { admin: "apps:manage" } },
  "apps.create": { any: { admin: "apps:manage" } },
  "apps.read": { any: { admin: "apps:manage" }, own: { app: "full_scope" } },
  "apps.update": { any: { admin: "apps:manage" } },
  "apps.delete": { any: { admin: "apps:manage" } },
  "apps.read_grants": { any: { admin: "apps:manage" }, own: { app: "none" } },
  "apps.change_grants": { any: { admin: "apps:manage" } },

  "subscriptions.list": OF_SUBSCRIPTIONS,
  "subscriptions.create": OF_SUBSCRIPTIONS,
  "subscriptions.read": OF_SUBSCRIPTIONS,
  "subscriptions.update": OF_SUBSCRIPTIONS,
  "subscriptions.rotate_secret": OF_SUBSCRIPTIONS,
  "subscriptions.test": OF_SUBSCRIPTIONS,
  "subscriptions.resume": OF_SUBSCRIPTIONS,
  "subscriptions.delete": OF_SUBSCRIPTIONS,

  "commands.send": OPERATORS,
  "commands.send_many": OPERATORS,

  "emulator.spin_up": { any: { admin: "emulator:run", user: "emulator:run", app: "emulator:run" } },
  "emulator.places": { any: { admin: "emulator:run", user: "emulator:run", app: "emulator:run" } },
  "emulator.list": OF_JOBS,
  "emulator.remove": OF_JOBS,

  "jobs.request_details": VIEWERS,
  "jobs.request_data": {
    any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" },
    own: { agent: "telemetry:read" },
  },
  "jobs.request_live": { any: { admin: "telemetry:read", user: "telemetry:read", app: "telemetry:read" } },
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

  "events.list": VIEWERS,
  "events.stream": VIEWERS,
  // Events that are about no agent, such as changes of accounts. Others see only those that belong to them.
  "events.read_all": { any: { admin: "audit:read" } },
} as const satisfies Record<string, typeof PUBLIC | Row>;

export type Action = keyof typeof matrix;

export const isPublic = (action: Action): boolean => matrix[action] === PUBLIC;

function rowOf(action: Action): Row {
  const row = matrix[action];
  return row === PUBLIC ? {} : row;
}

/** Returns the kinds of caller for the API documentation, marked if they may access only their own objects. */
export function callersOf(action: Action): string[] {
  const { any = {}, own = {} } = rowOf(action);
  return [...Object.keys(any), ...Object.keys(own).map((kind) => `${kind} (itself)`)];
}

/** Returns which objects the caller may perform the action on. Undefined if none. */
function grantFor(actor: Identity, action: Action): "any" | "own" | undefined {
  const { any = {}, own = {} } = rowOf(action);
  const meets = (requirement: Requirement | undefined): boolean => {
    if (requirement === "full_scope") return actor.hasFullScope;
    return requirement === "none" || (requirement !== undefined && actor.scopes.has(requirement));
  };
  if (meets(any[actor.kind])) return "any";
  return meets(own[actor.kind]) ? "own" : undefined;
}

/** Throws `NotAllowed` if the caller may not perform the action on any object. */
export function authorize(actor: Identity, action: Action): void {
  if (grantFor(actor, action) === undefined) throw new NotAllowed();
}

/**
 * Throws `NotAllowed` if the caller may not perform the action on the account of that name. Call it before looking the account up:
 * the rejection must not reveal whether the account exists.
 */
export function authorizeAccount(actor: Identity, action: Action, name: string): void {
  const grant = grantFor(actor, action);
  const isOwn = actor.name === name;
  if (grant === undefined || (grant === "own" && !isOwn)) throw new NotAllowed();
}

/** Like `authorizeAccount`, for an agent. An app may be limited to some names. Call `authorizeFoundAgent` with the agent afterwards. */
export function authorizeAgent(actor: Identity, action: Action, apId: string): void {
  authorizeAccount(actor, action, apId);
  if (actor.apIds !== undefined && !actor.apIds.includes(apId)) throw new NotAllowed();
}

/** Returns the agents on which the caller may perform the action, if `authorize` accepts it. */
export function agentScopeOf({ kind, id, grants, apIds }: Identity, action: Action): AgentScope {
  if (kind !== "user" && kind !== "app") return ALL_AGENTS;
  const requirement = rowOf(action).any?.[kind];
  const role =
    requirement === "none" || requirement === "full_scope" ? undefined : requirement && ROLE_OF_SCOPE[requirement];
  const scope = grants === undefined || role === undefined ? ALL_AGENTS : scopeOfGrants(grants, role, id);
  return apIds === undefined ? scope : { ...scope, apIds };
}

/** Returns the agents that the caller may see. For it, all others do not exist. */
export const visibleAgents = (actor: Identity): AgentScope => agentScopeOf(actor, "agents.list");

/**
 * Throws `NotFound` if there is no such agent or the caller may not see it: both must look the same. Throws `NotAllowed` if the caller
 * sees the agent and may not perform the action on it.
 */
export function authorizeFoundAgent<A extends ScopedAgent>(
  actor: Identity,
  action: Action,
  agent: A | undefined,
): asserts agent is A {
  if (agent === undefined || !isInScope(visibleAgents(actor), agent)) throw new NotFound("Agent");
  if (!isInScope(agentScopeOf(actor, action), agent)) throw new NotAllowed();
}

/** Returns whether the caller may perform the action on the objects of all accounts. */
export const canAccessAny = (actor: Identity, action: Action): boolean => grantFor(actor, action) === "any";

/**
 * Throws `NotAllowed` if the caller may not perform the action on any subscription, and `NotFound` if there is no such subscription or it
 * belongs to another account: both must look the same.
 */
export function authorizeSubscription<S extends { ownerId: string }>(
  actor: Identity,
  action: Action,
  subscription: S | undefined,
): asserts subscription is S {
  const grant = grantFor(actor, action);
  if (grant === undefined) throw new NotAllowed();
  if (subscription === undefined || (grant === "own" && subscription.ownerId !== actor.id)) {
    throw new NotFound("Subscription");
  }
}

/** Returns whether the caller sees the events that are about no agent. */
export const canSeeAllEvents = (actor: Identity): boolean => grantFor(actor, "events.read_all") === "any";

/** Like `authorizeAccount`, for a job. Its owner has access. For callbacks the agent that the job is about has access, too. */
export function authorizeJob(actor: Identity, action: Action, job: { ownerId: string; target: string | null }): void {
  const grant = grantFor(actor, action);
  const isOwner = job.ownerId === actor.id;
  const isTarget = action.startsWith("callbacks.") && actor.kind === "agent" && job.target === actor.name;
  if (grant === undefined || (grant === "own" && !isOwner && !isTarget)) throw new NotAllowed();
}
