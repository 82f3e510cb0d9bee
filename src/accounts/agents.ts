import type { Actor } from "../auth/identity.ts";
import type { Passwords } from "../auth/passwords.ts";
import { type Action, authorize, authorizeAgent } from "../auth/permissions.ts";
import { NotFound } from "../lib/errors.ts";
import type { Agent, AgentCreate, AgentUpdate } from "../schemas/agent.ts";
import type { AgentRow, AgentStore } from "./agent-store.ts";
import type { Enrolment } from "./enrolment.ts";
import type { OwnedJobs } from "./owned-jobs.ts";

export interface Agents {
  create(actor: Actor, agent: AgentCreate): Promise<Agent>;
  /** Like `create`, for an access point with the enrolment token. Enforces the limits of the token. */
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
}

export function createAgents({ store, passwords, enrolment, ownedJobs }: AgentsOptions): Agents {
  const register = async (
    action: Action,
    actor: Actor,
    { ap_id, password, configuration }: AgentCreate,
  ): Promise<Agent> => {
    authorize(actor, action);
    // The limits do not apply to administrators.
    const use = actor.kind === "enrolment" ? await enrolment.begin() : undefined;
    const credential = await passwords.hash(password);
    const agent = { apId: ap_id, credentialKind: "argon2id" as const, credential, configuration };
    return toAgent(await (use === undefined ? store.insert(agent, actor) : store.enrol(agent, actor, use)));
  };
  const find = async (apId: string): Promise<Agent> => {
    const row = await store.find(apId);
    if (row === undefined) throw new NotFound("Agent");
    return toAgent(row);
  };

  return {
    create: (actor, agent) => register("agents.create", actor, agent),
    enrol: (actor, agent) => register("agents.enrol", actor, agent),

    async read(actor, apId) {
      authorizeAgent(actor, "agents.read", apId);
      return await find(apId);
    },

    async update(actor, apId, { password, configuration }) {
      authorizeAgent(actor, "agents.update", apId);
      if (password) authorizeAgent(actor, "agents.change_password", apId);
      if (!password && !configuration) return await find(apId);
      const passwordHash = password ? await passwords.hash(password) : undefined;
      return toAgent(await store.update(apId, { passwordHash, configuration: configuration ?? undefined }, actor));
    },

    async delete(actor, apId) {
      authorizeAgent(actor, "agents.delete", apId);
      ownedJobs.closeStreams(await store.delete(apId, actor, ownedJobs.end));
    },
  };
}

const toAgent = ({ id, apId, configuration }: AgentRow): Agent => ({ id, ap_id: apId, configuration });
