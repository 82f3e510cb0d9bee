import type { AgentCache } from "../accounts/agents/agent-cache.ts";
import type { RegisterAgent } from "../accounts/agents/registration.ts";
import { scopeFilter } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import { type Action, agentScopeOf, authorize, authorizeAgent, canAccessAny } from "../auth/permissions.ts";
import { NotFound } from "../lib/errors.ts";
import { formatMetricName, type Labels } from "../protocols/metric-name.ts";
import type { Decoded, Point, Rejected } from "../protocols/point.ts";
import { Identifier } from "../schemas/primitives.ts";
import type { AgentValues, Ingest } from "./ingest.ts";

/** Accepts metrics in the protocols of other systems: assigns them to agents and passes them to the one ingest path. */
export interface Intake {
  /** Writes points. They are durable when it resolves, except those that it rejects. */
  write(actor: Actor, action: WriteAction, decoded: Decoded, assignment: Assignment): Promise<IntakeResult>;
}

export type WriteAction = Extract<Action, `telemetry.write_${string}`>;

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
  /** Returns those of the agents that the caller may write for. Registers absent ones if the caller may. */
  const findAgents = async (actor: Actor, action: WriteAction, apIds: readonly string[]): Promise<Set<string>> => {
    const valid = apIds.filter((apId) => Identifier.safeParse(apId).success);
    const existing = await agents.findMany(valid);
    const writable = [...existing.values()].filter(scopeFilter(agentScopeOf(actor, action)));
    const names = new Set(writable.map(({ apId }) => apId));
    if (!canAccessAny(actor, "agents.register")) return names;
    const absent = valid.filter((apId) => !existing.has(apId));
    for (const apId of absent.slice(0, MAX_REGISTERED)) if (await register(actor, apId)) names.add(apId);
    return names;
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
      if (!(await findAgents(actor, action, [apId])).has(apId)) throw new NotFound("Agent");
      return { agentOf: () => ({ apId, labels: undefined }), rejected: [] };
    }
    return await assignByLabels(points, namingLabels(actor, assignment.labels), (apIds) =>
      findAgents(actor, action, apIds),
    );
  };

  return {
    async write(actor, action, { points, rejected: malformed }, assignment) {
      const { agentOf, rejected: unassigned } = await assign(actor, action, points, assignment);
      const { accepted, rejected } = await ingest.ingestValues(groupPoints(points, agentOf));
      const unstored = rejected.map(({ field, reason, origin }): Rejected => ({ name: field, reason, origin }));
      return { accepted, rejected: [...malformed, ...unassigned, ...unstored] };
    },
  };
}

/** Returns the labels that name the agent in the points of a caller. */
export const namingLabels = ({ agentLabel }: Actor, byDefault: readonly string[]): readonly string[] =>
  agentLabel === undefined ? byDefault : [agentLabel];

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
  findAgents: (apIds: readonly string[]) => Promise<Set<string>>,
): Promise<Assigned> {
  const namesIn = (labels: Labels): string[] =>
    naming.flatMap((label) => (Object.hasOwn(labels, label) ? (labels[label] ?? []) : []));
  // Points of one series share their labels.
  const distinct = new Set(points.map(({ labels }) => labels));
  const found = await findAgents([...new Set([...distinct].flatMap(namesIn))]);
  const assignees = new Map<Labels, Assignee>();
  for (const labels of distinct) {
    const apId = namesIn(labels).find((name) => found.has(name));
    if (apId === undefined) continue;
    const rest = Object.fromEntries(Object.entries(labels).filter(([key]) => !naming.includes(key)));
    assignees.set(labels, { apId, labels: rest });
  }
  const rejected = points
    .filter(({ labels }) => !assignees.has(labels))
    .map(({ name, labels, origin }): Rejected => {
      const [unknown] = namesIn(labels);
      if (unknown !== undefined) return { name: unknown, reason: "is not an agent", origin };
      return { name, reason: `has no label ${naming.join(" or ")} that names its agent`, origin };
    });
  return { agentOf: ({ labels }) => assignees.get(labels), rejected };
}

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
