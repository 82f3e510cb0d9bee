import type { AgentStore } from "../accounts/agent-store.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeAgent, authorizeJob, canAccessAnyJob } from "../auth/permissions.ts";
import type { Outbox } from "../broker/outbox.ts";
import { Conflict, NotAllowed, NotFound } from "../lib/errors.ts";
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
import type { ProducerInput } from "./producers/producer.ts";
import type { StreamClient } from "./stream/stream-client.ts";

/** Jobs: asked for, read, looked up and cancelled. */
export interface Jobs {
  requestAgentDetails(actor: Actor): Promise<Queued>;
  requestAgentData(actor: Actor, request: DataRequest): Promise<Queued>;
  /** The answer to a request for a WebSocket. */
  open(actor: Actor, opening: SocketRequest): Promise<Response>;
  get(actor: Actor, jobNumber: string): Promise<JobStatus>;
  list(actor: Actor, query: JobsQuery): Promise<JobRecord[]>;
  cancel(actor: Actor, jobNumber: string): Promise<Ack>;
}

export interface SocketRequest {
  jobNumber: string;
  form: StreamFormat;
  after?: number | undefined;
  offeredProtocols: string | null;
}

export interface JobsOptions {
  index: JobStore;
  streams: StreamClient;
  agents: AgentStore;
  known: JobCache;
  outbox: Pick<Outbox, "withdraw">;
}

export function createJobs({ index, streams, agents, known, outbox }: JobsOptions): Jobs {
  const findNow = async (actor: Actor, action: "jobs.read" | "jobs.cancel", jobNumber: string): Promise<JobRow> => {
    authorize(actor, action);
    const job = await index.find(jobNumber);
    if (job === undefined) throw new NotFound("Job");
    authorizeJob(actor, action, job);
    return job;
  };
  const begin = async (actor: Actor, kind: JobKind, target: string | null, work: ProducerInput): Promise<Queued> => {
    const jobNumber = crypto.randomUUID();
    const endsMs = work.kind === "agent_data" && work.toMs > Date.now() ? work.toMs : undefined;
    await index.insert({ jobNumber, kind, state: "queued", target, endsMs, ...ownerOf(actor) });
    try {
      await streams.start(jobNumber, work);
    } catch (error) {
      // Nobody was told its number: it would be among the caller's jobs for two days, and never begin.
      await index.remove(jobNumber).catch(() => {});
      throw error;
    }
    return queued(jobNumber);
  };

  return {
    async requestAgentDetails(actor) {
      authorize(actor, "jobs.request_details");
      return await begin(actor, "agent_details", null, { kind: "agent_details", apIds: actor.apIds });
    },

    async requestAgentData(actor, { agent_id: apId, start_time: fromMs, end_time: toMs }) {
      authorizeAgent(actor, "jobs.request_data", apId);
      if ((await agents.find(apId)) === undefined) throw new NotFound("Agent");
      return await begin(actor, "agent_data", apId, { kind: "agent_data", apId, fromMs, toMs });
    },

    async open(actor, { jobNumber, form, after, offeredProtocols }) {
      authorize(actor, "jobs.stream");
      const job = (await known.find(jobNumber)) ?? (await known.claim(actor, jobNumber));
      authorizeJob(actor, "jobs.stream", job);
      allowToRead(actor, job);
      const { kind, name, version, expiresAtMs } = actor;
      if (kind === "setup" || kind === "enrolment" || kind === "scraper") throw new NotAllowed();
      return await streams.open(
        { jobNumber, form, after, reader: { kind, name, version, expiresAtMs } },
        offeredProtocols,
      );
    },

    async get(actor, jobNumber) {
      const job = await findNow(actor, "jobs.read", jobNumber);
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
      const ownerId = canAccessAnyJob(actor, "jobs.list") ? undefined : actor.id;
      return (await index.list({ ...query, ownerId })).map(toRecord);
    },

    async cancel(actor, jobNumber) {
      const job = await findNow(actor, "jobs.cancel", jobNumber);
      if (job.state === "done" || job.state === "failed" || job.state === "expired") {
        throw new Conflict(`The job is ${job.state} already`);
      }
      // The object first: when the index says so, nothing more is taken.
      await streams.close(jobNumber, "cancelled");
      // Nobody is to hear of it from now on. Not before: what is in the outbox ends by itself, should this get no further.
      await outbox.withdraw(jobNumber);
      await index.note(jobNumber, { state: "cancelled", detail: "Cancelled" }, actor);
      return ack("Job cancelled");
    },
  };
}

/** Whoever may not ask any more may not read the answer either. */
function allowToRead(actor: Actor, { kind, target }: JobRow): void {
  if (kind === "agent_details") authorize(actor, "jobs.request_details");
  if (kind === "agent_data") authorizeAgent(actor, "jobs.request_data", target ?? "");
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
