import { isInScope } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import type { Passwords } from "../auth/passwords.ts";
import { type Action, agentScopeOf, authorize, authorizeAgent, authorizeFoundAgent } from "../auth/permissions.ts";
import { NotAllowed } from "../lib/errors.ts";
import type { Agent, AgentCreate, AgentUpdate } from "../schemas/agent.ts";
import type { AgentRow, AgentStore } from "./agent-store.ts";
import type { Enrolment } from "./enrolment/enrolment.ts";
import { labelsOf } from "./labels.ts";
import type { JobRechecks, OwnedJobs } from "./owned-jobs.ts";

export interface Agents {
  create(actor: Actor, agent: AgentCreate): Promise<Agent>;
  /** Like `create`, for an access point with an enrolment token. Enforces the limits of the token. */
  enrol(actor: Actor, agent: AgentCreate): Promise<Agent>;
  read(actor: Actor, apId: string): Promise<Agent>;
  update(actor: Actor, apId: string, changes: AgentUpdate): Promise<Agent>;
  delete(actor: Actor, apId: string): Promise<void>;
}

export interface AgentsOptions {
  store: AgentStore;
  passwords: Passwords;
  enrolment: Enrolment;
  ownedJobs: OwnedJobs;
  rechecks: JobRechecks;
}

export function createAgents({ store, passwords, enrolment, ownedJobs, rechecks }: AgentsOptions): Agents {
  const register = async (
    action: Action,
    actor: Actor,
    { ap_id: apId, password, configuration, labels = {} }: AgentCreate,
  ): Promise<Agent> => {
    authorize(actor, action);
    // The limits do not apply to administrators.
    const use = actor.kind === "enrolment" ? await enrolment.begin(actor.id) : undefined;
    // An access point that enrols itself does not choose its labels.
    const given = use?.labels ?? labels;
    rejectOutside(actor, action, { apId, customLabels: given, configuration, owner: null });
    const credential = await passwords.hash(password);
    const agent = { apId, credentialKind: "argon2id" as const, credential, configuration, labels: given };
    return toAgent(await (use === undefined ? store.insert(agent, actor) : store.enrol(agent, actor, use)));
  };
  /** Returns the agent if the caller may perform the action on it. */
  const find = async (actor: Actor, action: Action, apId: string): Promise<AgentRow> => {
    authorizeAgent(actor, action, apId);
    const row = await store.find(apId);
    authorizeFoundAgent(actor, action, row);
    return row;
  };

  return {
    create: (actor, agent) => register("agents.create", actor, agent),
    enrol: (actor, agent) => register("agents.enrol", actor, agent),

    async read(actor, apId) {
      return toAgent(await find(actor, "agents.read", apId));
    },

    async update(actor, apId, { password, configuration }) {
      authorizeAgent(actor, "agents.update", apId);
      if (password) authorizeAgent(actor, "agents.change_password", apId);
      const row = await find(actor, "agents.update", apId);
      if (!password && !configuration) return toAgent(row);
      if (configuration) rejectOutside(actor, "agents.update", { ...row, configuration });
      const passwordHash = password ? await passwords.hash(password) : undefined;
      const changed = await store.update(apId, { passwordHash, configuration: configuration ?? undefined }, actor);
      if (password) rechecks.recheckJobsOf({ ownerId: row.id });
      if (changed.labels.technology !== row.labels.technology) rechecks.recheckJobsOf({ apIds: [apId] });
      return toAgent(changed);
    },

    async delete(actor, apId) {
      await find(actor, "agents.delete", apId);
      ownedJobs.closeStreams(await store.delete(apId, actor, ownedJobs.end));
      rechecks.recheckJobsOf({ apIds: [apId] });
    },
  };
}

/** Throws `NotAllowed` if the caller's grants would not include the agent: managers cannot move agents out of their scope. */
export function rejectOutside(actor: Actor, action: Action, agent: NewLabels): void {
  if (actor.kind !== "user" && actor.kind !== "app") return;
  const { apId, customLabels, configuration, owner } = agent;
  const labels = labelsOf({ apId, customLabels, accessPointType: configuration.access_point_type, owner });
  if (!isInScope(agentScopeOf(actor, action), { apId, labels, ownerId: null })) {
    throw new NotAllowed("Your grants do not include an agent with these labels");
  }
}

type NewLabels = Pick<AgentRow, "apId" | "customLabels" | "configuration" | "owner">;

const toAgent = ({ id, apId, configuration }: AgentRow): Agent => ({ id, ap_id: apId, configuration });
