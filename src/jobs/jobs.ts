import type { AgentStore } from "../accounts/agents/agent-store.ts";
import { isInScope, isUnlimited } from "../auth/agent-scope.ts";
import type { Actor } from "../auth/identity.ts";
import {
  agentScopeOf,
  authorize,
  authorizeAgent,
  authorizeFoundAgent,
  authorizeJob,
  canAccessAny,
  visibleAgents,
} from "../auth/permissions.ts";
import type { Outbox } from "../broker/outbox.ts";
import { Conflict, Invalid, NotAllowed, NotFound } from "../lib/errors.ts";
import type { Selector } from "../lib/selectors.ts";
import {
  type DataRequest,
  type JobKind,
  type JobRecord,
  type JobStatus,
  type JobsQuery,
  type Queued,
  queued,
} from "../schemas/job.ts";
import { type Ack, ack } from "../schemas/primitives.ts";
import type { StreamFormat } from "../schemas/stream-protocol.ts";
import type { JobCache } from "./job-cache.ts";
import { type JobRow, type JobStore, ownerOf } from "./job-store.ts";
import { MAX_LIVE_AGENTS } from "./producers/live-selection.ts";
import { endOf, type ProducerInput } from "./producers/producer.ts";
import type { Reader } from "./stream/handshake.ts";
import type { StreamClient } from "./stream/stream-client.ts";

/** Starts, reads, lists and cancels jobs. */
export interface Jobs {
  /** Requests the details of all agents that the caller sees, or of those that a selector selects. */
  requestAgentDetails(actor: Actor, selector?: Selector): Promise<Queued>;
  requestAgentData(actor: Actor, request: DataRequest): Promise<Queued>;
  /** Requests the new data of all agents that the caller sees and a selector selects. */
  requestLiveData(actor: Actor, request: { duration: number }, selector: Selector): Promise<Queued>;
  /** Returns the response that upgrades a request to a WebSocket. Creates the job if the number is unused. */
  open(actor: Actor, request: SocketRequest): Promise<Response>;
  get(actor: Actor, jobNumber: string): Promise<JobStatus>;
  list(actor: Actor, query: JobsQuery): Promise<JobRecord[]>;
  cancel(actor: Actor, jobNumber: string): Promise<Ack>;
}

export interface SocketRequest {
  jobNumber: string;
  format: StreamFormat;
  after?: number | undefined;
  offeredProtocols: string | null;
}

export interface JobsOptions {
  jobStore: JobStore;
  jobCache: JobCache;
  streams: StreamClient;
  agents: AgentStore;
  outbox: Pick<Outbox, "withdraw">;
}

export function createJobs({ jobStore, jobCache, streams, agents, outbox }: JobsOptions): Jobs {
  /** Reads the store, not the cache: the state must be current. */
  const findCurrent = async (actor: Actor, action: "jobs.read" | "jobs.cancel", jobNumber: string): Promise<JobRow> => {
    authorize(actor, action);
    const job = await jobStore.find(jobNumber);
    if (job === undefined) throw new NotFound("Job");
    authorizeJob(actor, action, job);
    return job;
  };

  const startJob = async (
    actor: Actor,
    kind: JobKind,
    target: string | null,
    input: ProducerInput,
  ): Promise<Queued> => {
    const jobNumber = crypto.randomUUID();
    const endMs = endOf(input);
    const endsMs = endMs !== undefined && endMs > Date.now() ? endMs : undefined;
    await jobStore.insert({ jobNumber, kind, state: "queued", target, endsMs, ...ownerOf(actor) });
    try {
      await streams.start(jobNumber, input);
    } catch (error) {
      // The caller does not learn the number. Without this, the job would stay listed for two days and never start.
      await jobStore.remove(jobNumber).catch(() => {});
      throw error;
    }
    return queued(jobNumber);
  };

  /** Throws if the caller may no longer request such a job: without that permission, it must not read the results either. */
  const authorizeRead = async (actor: Actor, { kind, target }: JobRow): Promise<void> => {
    if (kind === "agent_details") authorize(actor, "jobs.request_details");
    if (kind === "agent_data" && target === null) authorizeLive(actor);
    if (kind === "agent_data" && target !== null) authorizeAgent(actor, "jobs.request_data", target);
    if ((kind !== "agent_data" && kind !== "command") || target === null) return;
    const scope = agentScopeOf(actor, kind === "command" ? "commands.send" : "jobs.request_data");
    if (isUnlimited(scope)) return;
    const agent = await agents.find(target);
    if (agent === undefined || !isInScope(scope, agent)) throw new NotAllowed();
  };

  return {
    async requestAgentDetails(actor, selector) {
      authorize(actor, "jobs.request_details");
      // An object of an earlier version knows only the names.
      const input = { kind: "agent_details", apIds: actor.apIds, scope: visibleAgents(actor), selector } as const;
      return await startJob(actor, "agent_details", null, input);
    },

    async requestAgentData(actor, { agent_id: apId, start_time: fromMs, end_time: toMs }) {
      authorizeAgent(actor, "jobs.request_data", apId);
      authorizeFoundAgent(actor, "jobs.request_data", await agents.find(apId));
      return await startJob(actor, "agent_data", apId, { kind: "agent_data", apId, fromMs, toMs });
    },

    async requestLiveData(actor, { duration }, selector) {
      authorizeLive(actor);
      const found = await agents.names({ scope: visibleAgents(actor), selector });
      if (found.length > MAX_LIVE_AGENTS) {
        const msg = `Value error, the selector must not select more than ${MAX_LIVE_AGENTS} agents`;
        throw new Invalid([{ loc: ["selector"], msg, type: "too_many_agents" }], "query");
      }
      const account = { kind: actor.kind === "app" ? "app" : "user", id: actor.id, name: actor.name } as const;
      const toMs = Date.now() + duration * 1000;
      return await startJob(actor, "agent_data", null, { kind: "live_data", account, selector, toMs });
    },

    async open(actor, { jobNumber, format, after, offeredProtocols }) {
      authorize(actor, "jobs.stream");
      const job = (await jobCache.find(jobNumber)) ?? (await jobCache.claim(actor, jobNumber));
      authorizeJob(actor, "jobs.stream", job);
      await authorizeRead(actor, job);
      const { kind, name, version, expiresAtMs } = actor;
      if (kind === "setup" || kind === "enrolment" || kind === "scraper") throw new NotAllowed();
      const reader = { kind, name, version, expiresAtMs, target: targetOf(job) };
      return await streams.open({ jobNumber, form: format, after, reader }, offeredProtocols);
    },

    async get(actor, jobNumber) {
      const job = await findCurrent(actor, "jobs.read", jobNumber);
      const { messages, retained, retainedBytes, acknowledgedUpTo, sockets, rows } = await streams.describe(jobNumber);
      return {
        ...toRecord(job),
        messages: Math.max(messages, job.messages),
        retained,
        retained_bytes: retainedBytes,
        acknowledged_up_to: acknowledgedUpTo,
        sockets,
        rows_sent: rows?.sent ?? 0,
        rows_estimated: rows?.estimated ?? null,
      };
    },

    async list(actor, query) {
      authorize(actor, "jobs.list");
      const ownerId = canAccessAny(actor, "jobs.list") ? undefined : actor.id;
      return (await jobStore.list({ ...query, ownerId })).map(toRecord);
    },

    async cancel(actor, jobNumber) {
      const job = await findCurrent(actor, "jobs.cancel", jobNumber);
      if (job.state === "done" || job.state === "failed" || job.state === "expired") {
        throw new Conflict(`The job is ${job.state} already`);
      }
      // Close the stream first: a job that is listed as cancelled must accept no more messages.
      await streams.close(jobNumber, "cancelled");
      // Withdraw after that: if this fails, the message in the outbox still expires by itself.
      await outbox.withdraw(jobNumber);
      await jobStore.update(jobNumber, { state: "cancelled", detail: "Cancelled" }, actor);
      return ack("Job cancelled");
    },
  };
}

/** The rows name the agents, as a list of agents does. */
function authorizeLive(actor: Actor): void {
  authorize(actor, "jobs.request_live");
  authorize(actor, "agents.list");
}

/** Returns the agent that a job is about, and the role that its readers need for it. Later checks of a socket use it. */
function targetOf({ kind, target }: JobRow): Reader["target"] {
  if (target === null || (kind !== "agent_data" && kind !== "command")) return undefined;
  return { apId: target, role: kind === "command" ? "operator" : "viewer" };
}

export const toRecord = ({
  jobNumber,
  kind,
  state,
  owner,
  createdAt,
  updatedAt,
  messages,
  detail,
}: JobRow): JobRecord => ({
  job_number: jobNumber,
  kind,
  state,
  owner,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
  messages,
  detail,
});
