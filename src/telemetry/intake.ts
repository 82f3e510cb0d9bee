import type { AgentCache } from "../accounts/agents/agent-cache.ts";
import type { Registration } from "../accounts/agents/registration.ts";
import { scopeFilter } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, agentScopeOf, authorize, authorizeAgent, canAccessAny } from "../auth/permissions.ts";
import { NotFound, Unavailable } from "../lib/errors.ts";
import { formatMetricName, type Labels, MAX_NAME_LENGTH, shortened } from "../protocols/metric-name.ts";
import { type Decoded, lengthOfLabels, NAME_TOO_LONG, type Point, type Rejected } from "../protocols/point.ts";
import type { Protocol } from "../schemas/metrics.ts";
import { Identifier } from "../schemas/primitives.ts";
import type { AgentValues, Ingest } from "./ingest.ts";

/** Accepts metrics in the protocols of other systems: assigns them to agents and passes them to the one ingest path. */
export interface Intake {
  /** Writes points. They are durable when it resolves, except those that it rejects. */
  write(actor: Actor, protocol: IntakeProtocol, decoded: Decoded, assignment: Assignment): Promise<IntakeResult>;
}

/** The protocols of other systems. */
export type IntakeProtocol = Exclude<Protocol, "http" | "mqtt" | "emulator">;
type WriteAction = Extract<Action, `telemetry.write_${string}`>;

/** How an app's points are assigned: to the agent that one of the labels names, the first one first, or all to one agent. */
export type Assignment = { labels: readonly string[] } | { apId: string };

export interface IntakeResult {
  accepted: number;
  rejected: Rejected[];
}

export interface IntakeOptions {
  ingest: Pick<Ingest, "ingestValues">;
  agents: Pick<AgentCache, "findMany">;
  registration: Registration;
}

/** Agents that one request may register. Each is a transaction. The sender repeats the request, which then registers the next ones. */
const MAX_REGISTERED = 100;

export function createIntake({ ingest, agents, registration }: IntakeOptions): Intake {
  const isName = (name: string): boolean => Identifier.safeParse(name).success;
  const accessOf = (actor: Actor, action: WriteAction): AgentAccess => {
    const find = async (names: readonly string[]): Promise<Set<string>> => {
      const existing = await agents.findMany(names.filter(isName));
      const writable = [...existing.values()].filter(scopeFilter(agentScopeOf(actor, action)));
      return new Set(writable.map(({ apId }) => apId));
    };
    const register = async (names: readonly string[]): Promise<Set<string>> => {
      if (!canAccessAny(actor, "agents.register")) return new Set();
      const allowed = names.filter((name) => isName(name) && registration.isAllowed(actor, name));
      const existing: string[] = [];
      for (const apId of allowed.slice(0, MAX_REGISTERED)) {
        if (!(await registration.register(actor, apId))) existing.push(apId);
      }
      if (allowed.length > MAX_REGISTERED && existing.length < MAX_REGISTERED) {
        throw new Unavailable(
          "registration of more agents",
          new Error(`One request registers ${MAX_REGISTERED} agents`),
        );
      }
      // Another request has registered these in the meantime, or they are not in the scope.
      const found = existing.length === 0 ? new Set<string>() : await find(existing);
      return new Set(allowed.slice(0, MAX_REGISTERED).filter((apId) => found.has(apId) || !existing.includes(apId)));
    };
    return { find, register };
  };

  const assign = async (
    actor: Actor,
    action: WriteAction,
    points: readonly Point[],
    assignment: Assignment,
  ): Promise<Assigned> => {
    if (actor.kind === "agent") {
      // The address may name the agent as well.
      const apId = "apId" in assignment ? assignment.apId : actor.name;
      authorizeAgent(actor, action, apId);
      return { agentOf: () => ({ apId, labels: undefined }), rejected: [] };
    }
    authorize(actor, action);
    if ("apId" in assignment) {
      const { apId } = assignment;
      authorizeAgent(actor, action, apId);
      const access = accessOf(actor, action);
      const isFound = (await access.find([apId])).has(apId) || (await access.register([apId])).has(apId);
      if (!isFound) throw new NotFound("Agent");
      return { agentOf: () => ({ apId, labels: undefined }), rejected: [] };
    }
    return await assignByLabels(points, namingLabels(actor, assignment.labels), accessOf(actor, action));
  };

  return {
    async write(actor, protocol, { points, rejected: malformed }, assignment) {
      const { agentOf, rejected: unassigned } = await assign(actor, `telemetry.write_${protocol}`, points, assignment);
      const app = actor.kind === "app" ? actor.name : undefined;
      const { groups, rejected: tooLong } = groupPoints(points, agentOf);
      const { accepted, rejected } = await ingest.ingestValues(groups, { protocol, app });
      const unstored = rejected.map(({ field, reason, origin }): Rejected => ({ name: field, reason, origin }));
      return { accepted, rejected: [...malformed, ...unassigned, ...tooLong, ...unstored] };
    },
  };
}

/** Returns the labels that name the agent in the points of a caller. */
export const namingLabels = ({ agentLabel }: Actor, byDefault: readonly string[]): readonly string[] =>
  agentLabel === undefined ? byDefault : [agentLabel];

/** The agents that a caller may write for. */
interface AgentAccess {
  /** Returns the names of those that exist. */
  find(names: readonly string[]): Promise<Set<string>>;
  /** Registers absent ones if the caller may. Returns the names of those that exist now. */
  register(names: readonly string[]): Promise<Set<string>>;
}

/** The agent of a point, and the point's labels if they differ from those that it has. */
interface Assignee {
  apId: string;
  labels: Labels | undefined;
}

interface Assigned {
  /** Undefined if the point was rejected. */
  agentOf(point: Point): Assignee | undefined;
  rejected: Rejected[];
}

/**
 * Assigns each point to the agent that one of the labels names. These labels are not part of the metric's name, except if the point has
 * other labels that name its agent.
 */
async function assignByLabels(
  points: readonly Point[],
  naming: readonly string[],
  { find, register }: AgentAccess,
): Promise<Assigned> {
  const namesIn = ({ labels, agentLabels = labels }: Point): string[] =>
    naming.flatMap((label) => (Object.hasOwn(agentLabels, label) ? (agentLabels[label] ?? []) : []));
  // Points of one series share their labels.
  const distinct = [...new Map(points.map((point) => [point.labels, point])).values()].map((point) => ({
    labels: point.labels,
    hasAgentLabels: point.agentLabels !== undefined,
    names: namesIn(point),
  }));
  const found = await find([...new Set(distinct.flatMap(({ names }) => names))]);
  const absent = distinct.filter(({ names }) => !names.some((name) => found.has(name)));
  const registered = await register([...new Set(absent.flatMap(({ names }) => nameToRegister(names) ?? []))]);
  const assignees = new Map<Labels, Assignee>();
  for (const { labels, hasAgentLabels, names } of distinct) {
    const apId = names.find((name) => found.has(name)) ?? names.find((name) => registered.has(name));
    if (apId === undefined) continue;
    if (hasAgentLabels) {
      assignees.set(labels, { apId, labels: undefined });
      continue;
    }
    const rest = Object.fromEntries(Object.entries(labels).filter(([key]) => !naming.includes(key)));
    assignees.set(labels, { apId, labels: rest });
  }
  const rejected = points
    .filter(({ labels }) => !assignees.has(labels))
    .map((point): Rejected => {
      const { name, origin } = point;
      const names = namesIn(point);
      if (names.length > 0) return { name: names.join(" or "), reason: "is not an agent", origin };
      return { name, reason: `has no label ${naming.join(" or ")} that names its agent`, origin };
    });
  return { agentOf: ({ labels }) => assignees.get(labels), rejected };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns the first name that is not a UUID, if there is one: programs invent a UUID at each start. */
const nameToRegister = (names: readonly string[]): string | undefined =>
  names.find((name) => !UUID.test(name)) ?? names[0];

/** Groups points by agent and time, as samples have them. Rejects those whose name with its labels is too long. */
function groupPoints(
  points: readonly Point[],
  agentOf: Assigned["agentOf"],
): { groups: AgentValues[]; rejected: Rejected[] } {
  const groups = new Map<string, Map<number | undefined, AgentValues>>();
  const rejected: Rejected[] = [];
  let last: { name: string; labels: Labels; field: string | undefined } | undefined;
  for (const point of points) {
    const assignee = agentOf(point);
    if (assignee === undefined) continue;
    const { name, labels, tsMs, value, origin } = point;
    // Points of one series follow each other. Each has the same field.
    if (last?.labels !== labels || last.name !== name) {
      last = { name, labels, field: toField(name, assignee.labels ?? labels) };
    }
    if (last.field === undefined) {
      rejected.push({ name: shortened(name), reason: NAME_TOO_LONG, origin });
      continue;
    }
    const byTime = groups.get(assignee.apId) ?? new Map<number | undefined, AgentValues>();
    groups.set(assignee.apId, byTime);
    const group = byTime.get(tsMs) ?? { apId: assignee.apId, tsMs, values: [] };
    byTime.set(tsMs, group);
    group.values.push({ field: last.field, value, origin });
  }
  return { groups: [...groups.values()].flatMap((byTime) => [...byTime.values()]), rejected };
}

/** Returns the name of a metric with its labels, or `undefined` if it is too long. */
function toField(name: string, labels: Labels): string | undefined {
  // Writing a name that is much too long takes time, too.
  if (name.length + lengthOfLabels(labels) > MAX_NAME_LENGTH) return undefined;
  const field = formatMetricName(name, labels);
  return field.length > MAX_NAME_LENGTH ? undefined : field;
}

const MAX_DESCRIBED = 10;

/** Describes rejections in one text: the first different ones, and how many more there are. */
export function describeRejections(rejected: readonly Rejected[]): string {
  const texts = new Set(rejected.map(({ name, reason }) => `${name} ${reason}`));
  const first = [...texts].slice(0, MAX_DESCRIBED).join("; ");
  return texts.size > MAX_DESCRIBED ? `${first}; and ${texts.size - MAX_DESCRIBED} more` : first;
}
