import type { AgentCache } from "../accounts/agents/agent-cache.ts";
import type { RegisterAgent } from "../accounts/agents/registration.ts";
import { scopeFilter } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, agentScopeOf, authorize, authorizeAgent, canAccessAny } from "../auth/permissions.ts";
import { NotFound } from "../lib/errors.ts";
import { formatMetricName, type Labels } from "../protocols/metric-name.ts";
import type { Decoded, Point, Rejected } from "../protocols/point.ts";
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
  register: RegisterAgent;
}

/** Agents that one request may register. Each is a transaction. Later requests register the others. */
const MAX_REGISTERED = 100;

export function createIntake({ ingest, agents, register }: IntakeOptions): Intake {
  const isName = (name: string): boolean => Identifier.safeParse(name).success;
  const accessOf = (actor: Actor, action: WriteAction): AgentAccess => ({
    async find(names) {
      const existing = await agents.findMany(names.filter(isName));
      const writable = [...existing.values()].filter(scopeFilter(agentScopeOf(actor, action)));
      return new Set(writable.map(({ apId }) => apId));
    },
    async register(names) {
      const registered = new Set<string>();
      if (!canAccessAny(actor, "agents.register")) return registered;
      for (const apId of names.filter(isName).slice(0, MAX_REGISTERED)) {
        if (await register(actor, apId)) registered.add(apId);
      }
      return registered;
    },
  });

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
      const { accepted, rejected } = await ingest.ingestValues(groupPoints(points, agentOf), { protocol, app });
      const unstored = rejected.map(({ field, reason, origin }): Rejected => ({ name: field, reason, origin }));
      return { accepted, rejected: [...malformed, ...unassigned, ...unstored] };
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

/** Assigns each point to the agent that one of the labels names. These labels are not part of the metric's name then. */
async function assignByLabels(
  points: readonly Point[],
  naming: readonly string[],
  { find, register }: AgentAccess,
): Promise<Assigned> {
  const namesIn = (labels: Labels): string[] =>
    naming.flatMap((label) => (Object.hasOwn(labels, label) ? (labels[label] ?? []) : []));
  // Points of one series share their labels.
  const distinct = [...new Set(points.map(({ labels }) => labels))].map((labels) => ({
    labels,
    names: namesIn(labels),
  }));
  const found = await find([...new Set(distinct.flatMap(({ names }) => names))]);
  const absent = distinct.filter(({ names }) => !names.some((name) => found.has(name)));
  const registered = await register([...new Set(absent.flatMap(({ names }) => nameToRegister(names) ?? []))]);
  const assignees = new Map<Labels, Assignee>();
  for (const { labels, names } of distinct) {
    const apId = names.find((name) => found.has(name)) ?? names.find((name) => registered.has(name));
    if (apId === undefined) continue;
    const rest = Object.fromEntries(Object.entries(labels).filter(([key]) => !naming.includes(key)));
    assignees.set(labels, { apId, labels: rest });
  }
  const rejected = points
    .filter(({ labels }) => !assignees.has(labels))
    .map(({ name, labels, origin }): Rejected => {
      const names = namesIn(labels);
      if (names.length > 0) return { name: names.join(" or "), reason: "is not an agent", origin };
      return { name, reason: `has no label ${naming.join(" or ")} that names its agent`, origin };
    });
  return { agentOf: ({ labels }) => assignees.get(labels), rejected };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns the first name that is not a UUID, if there is one: programs invent a UUID at each start. */
const nameToRegister = (names: readonly string[]): string | undefined =>
  names.find((name) => !UUID.test(name)) ?? names[0];

/** Groups points by agent and time, as samples have them. */
function groupPoints(points: readonly Point[], agentOf: Assigned["agentOf"]): AgentValues[] {
  const groups = new Map<string, Map<number | undefined, AgentValues>>();
  let last: { name: string; labels: Labels; field: string } | undefined;
  for (const point of points) {
    const assignee = agentOf(point);
    if (assignee === undefined) continue;
    const { name, labels, tsMs, value, origin } = point;
    // Points of one series follow each other. Each has the same field.
    if (last?.labels !== labels || last.name !== name) {
      last = { name, labels, field: formatMetricName(name, assignee.labels ?? labels) };
    }
    const byTime = groups.get(assignee.apId) ?? new Map<number | undefined, AgentValues>();
    groups.set(assignee.apId, byTime);
    const group = byTime.get(tsMs) ?? { apId: assignee.apId, tsMs, values: [] };
    byTime.set(tsMs, group);
    group.values.push({ field: last.field, value, origin });
  }
  return [...groups.values()].flatMap((byTime) => [...byTime.values()]);
}

const MAX_DESCRIBED = 10;

/** Describes rejections in one text: the first different ones, and how many more there are. */
export function describeRejections(rejected: readonly Rejected[]): string {
  const texts = new Set(rejected.map(({ name, reason }) => `${name} ${reason}`));
  const first = [...texts].slice(0, MAX_DESCRIBED).join("; ");
  return texts.size > MAX_DESCRIBED ? `${first}; and ${texts.size - MAX_DESCRIBED} more` : first;
}
