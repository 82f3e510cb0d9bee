import * as z from "zod";
import type { AgentStore } from "../accounts/agent-store.ts";
import { type Actor, allow, allowOnAgent, allowOnJob, reachesAnyJob } from "../auth/permissions.ts";
import type { Outbox } from "../broker/outbox.ts";
import { Conflict, Invalid, NotAllowed, NotFound, TooLarge, TooMany } from "../errors.ts";
import { EmulatorReport } from "../schemas/emulator.ts";
import {
  type CallbackAnswer,
  type CommandResult,
  type DataRequest,
  type JobKind,
  type JobRecord,
  type JobStatus,
  type JobsQuery,
  ObjectItems,
  type Queued,
} from "../schemas/job.ts";
import { type Done, done } from "../schemas/primitives.ts";
import type { Progress } from "../schemas/stream.ts";
import { TtlCache } from "../ttl-cache.ts";
import type { NewMessage } from "./buffer.ts";
import type { Form } from "./envelope.ts";
import { MAX_KEY_LENGTH } from "./idempotency.ts";
import type { JobIndex, JobRow } from "./job-index.ts";
import type { Posted } from "./job-stream.ts";
import type { ClosedState } from "./message-tables.ts";
import type { EmulatorParts, PartsEnd } from "./parts-store.ts";
import type { Streams } from "./streams.ts";
import type { Work } from "./work.ts";

/** Jobs: asked for, posted to, read, looked up and cancelled. */
export interface Jobs {
  requestAgentDetails(actor: Actor): Promise<Queued>;
  requestAgentData(actor: Actor, request: DataRequest): Promise<Queued>;
  /** What a subscriber has to say to whoever reads the job. */
  callback(actor: Actor, kind: CallbackKind, callback: Callback): Promise<CallbackAnswer>;
  /** An agent's answer to a command, which came by way of the broker. */
  takeResult(apId: string, result: CommandResult): Promise<void>;
  /** Nobody has answered in time. */
  expire(jobNumber: string): Promise<void>;
  /** The answer to a request for a WebSocket. */
  open(actor: Actor, opening: SocketRequest): Promise<Response>;
  get(actor: Actor, jobNumber: string): Promise<JobStatus>;
  list(actor: Actor, query: JobsQuery): Promise<JobRecord[]>;
  cancel(actor: Actor, jobNumber: string): Promise<Done>;
}

export type CallbackKind = Exclude<JobKind, "stream">;

export interface Callback {
  jobNumber: string;
  /** JSON text. */
  data: string;
  /** Of several callbacks with the same key only the first counts. */
  key?: string | undefined;
}

export interface SocketRequest {
  jobNumber: string;
  form: Form;
  after?: number | undefined;
  offeredProtocols: string | null;
}

/** A job's owner and target never change, and its object knows best whether it is closed. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;
const RESULT_KEY = "result";
/** Items that say nothing of a part are passed on and no more. */
const EmulatorReports = z
  .array(z.unknown())
  .transform((items) => items.flatMap((item) => EmulatorReport.safeParse(item).data ?? []));
const EXPIRY_KEY = "expiry";

export interface JobsOptions {
  index: JobIndex;
  streams: Streams;
  agents: AgentStore;
  outbox: Pick<Outbox, "arrived">;
  emulatorParts: EmulatorParts;
  now?: () => number;
}

export function createJobs({ index, streams, agents, outbox, emulatorParts, now = Date.now }: JobsOptions): Jobs {
  const known = new TtlCache<JobRow>({ maxEntries: MAX_KNOWN, now });
  const find = async (jobNumber: string): Promise<JobRow | undefined> => {
    const job = known.get(jobNumber) ?? (await index.find(jobNumber));
    if (job !== undefined) known.set(jobNumber, job, now() + KNOWN_MS);
    return job;
  };
  const findNow = async (actor: Actor, action: "jobs.read" | "jobs.cancel", jobNumber: string): Promise<JobRow> => {
    allow(actor, action);
    const job = await index.find(jobNumber);
    if (job === undefined) throw new NotFound("Job");
    allowOnJob(actor, action, job);
    return job;
  };
  /** A number that nobody has used: whoever names it first owns it. An agent cannot. */
  const claim = async (actor: Actor, jobNumber: string): Promise<JobRow> => {
    if (actor.kind === "agent") throw new NotAllowed();
    return await index.insert({ jobNumber, kind: "stream", state: "running", target: null, ...ownerOf(actor) });
  };

  const post = async (jobNumber: string, message: NewMessage): Promise<Posted & { outcome: "stored" }> => {
    const posted = await streams.post(jobNumber, message);
    switch (posted.outcome) {
      case "full":
        throw new TooMany(posted.retryAfterS);
      case "too_large":
        throw new TooLarge();
      case "closed":
        throw closed(posted.state);
      case "stored":
        return posted;
    }
  };

  /** Notes how far a job has come, before anybody reads of it; refuses to where it was cancelled or has expired. */
  const advance = async (jobNumber: string, state: "running" | "done" | "failed"): Promise<void> => {
    const standing = await index.note(jobNumber, { state });
    if (standing === "cancelled" || standing === "expired") throw closed(standing);
  };

  /** What an emulator says of its parts of a job; whether that is the end of the job. A part is the first one's to claim it. */
  const noteParts = async (jobNumber: string, data: string): Promise<boolean> => {
    const reports = EmulatorReports.parse(JSON.parse(data));
    let end: PartsEnd | undefined;
    for (const report of reports) {
      const noted = await emulatorParts.note(jobNumber, report);
      if (!noted.isNoted) throw new Conflict("This part of the job is another emulator's, or over");
      await outbox.arrived(jobNumber, report.part);
      end = noted.end;
    }
    if (reports.length > 0) await advance(jobNumber, end ?? "running");
    return end !== undefined;
  };

  const begin = async (actor: Actor, kind: JobKind, target: string | null, work: Work): Promise<Queued> => {
    const jobNumber = crypto.randomUUID();
    await index.insert({ jobNumber, kind, state: "queued", target, ...ownerOf(actor) });
    try {
      await streams.start(jobNumber, work);
    } catch (error) {
      // Nobody was told its number: it would be among the caller's jobs for two days, and never begin.
      await index.remove(jobNumber).catch(() => {});
      throw error;
    }
    return { status: "queued", job_number: jobNumber, websocket: `/api/v1/ws/${jobNumber}` };
  };

  return {
    async requestAgentDetails(actor) {
      allow(actor, "jobs.request_details");
      return await begin(actor, "agent_details", null, { kind: "agent_details", apIds: actor.apIds });
    },

    async requestAgentData(actor, { agent_id: apId, start_time: fromMs, end_time: toMs }) {
      allowOnAgent(actor, "jobs.request_data", apId);
      if ((await agents.find(apId)) === undefined) throw new NotFound("Agent");
      return await begin(actor, "agent_data", apId, { kind: "agent_data", apId, fromMs, toMs });
    },

    async callback(actor, kind, { jobNumber, data, key }) {
      const action = `callbacks.${kind}` as const;
      allow(actor, action);
      refuseLongKey(key);
      const job = await find(jobNumber);
      if (job !== undefined) allowOnJob(actor, action, job);
      // A subscriber does not take a number from its reader.
      else if (!reachesAnyJob(actor, action)) allowOnJob(actor, action, await claim(actor, jobNumber));
      const isResult = kind === "command" && job?.kind === "command";
      if (isResult) await advance(jobNumber, statusIn(data));
      const isAllOver = kind === "emulator" && job?.kind === "emulator" && (await noteParts(jobNumber, data));
      const { seq, delivered, queued } = await post(jobNumber, { type: kind, data, key, final: isResult || isAllOver });
      // Only then: until its answer is stored, a command is published again.
      if (isResult) await outbox.arrived(jobNumber);
      const detail = queued ? "Stored until a socket connects" : `Sent to ${delivered} of the job's sockets`;
      return { status: "success", job_number: jobNumber, seq, delivered, queued, detail };
    },

    async takeResult(apId, { job_number, status, data }) {
      const job = await find(job_number);
      if (job?.target !== apId) throw new NotFound("Job");
      const isResult = job.kind === "command";
      if (isResult) await advance(job_number, status);
      // One answer to a command, however often the broker brings it.
      await post(job_number, {
        type: "command",
        data: JSON.stringify([{ status, data }]),
        final: true,
        key: RESULT_KEY,
      });
      if (isResult) await outbox.arrived(job_number);
    },

    async expire(jobNumber) {
      // The index first: who answers at the same moment has either answered in time or is told that it was too late.
      const standing = await index.note(jobNumber, { state: "expired", detail: "Nobody answered in time" });
      if (standing !== "expired") return;
      const data = JSON.stringify({ state: "expired", rows_sent: 0, rows_estimated: null } satisfies Progress);
      await streams.post(jobNumber, { type: "status", data, final: true, key: EXPIRY_KEY });
      await streams.close(jobNumber, "expired");
    },

    async open(actor, { jobNumber, form, after, offeredProtocols }) {
      allow(actor, "jobs.stream");
      const job = (await find(jobNumber)) ?? (await claim(actor, jobNumber));
      allowOnJob(actor, "jobs.stream", job);
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
      allow(actor, "jobs.list");
      const ownerId = reachesAnyJob(actor, "jobs.list") ? undefined : actor.id;
      return (await index.list({ ...query, ownerId })).map(toRecord);
    },

    async cancel(actor, jobNumber) {
      const job = await findNow(actor, "jobs.cancel", jobNumber);
      if (job.state === "done" || job.state === "failed" || job.state === "expired") {
        throw new Conflict(`The job is ${job.state} already`);
      }
      // The object first: when the index says so, nothing more is taken.
      await streams.close(jobNumber, "cancelled");
      await index.note(jobNumber, { state: "cancelled", detail: "Cancelled" });
      return done("Job cancelled");
    },
  };
}

const closed = (state: ClosedState): Conflict =>
  new Conflict(state === "cancelled" ? "The job was cancelled" : "The job has expired");

/** An answer that comes by HTTP may say how it went, as one by way of the broker has to. */
const statusIn = (data: string): CommandResult["status"] =>
  ObjectItems.parse(JSON.parse(data)).some(({ status }) => status === "failed") ? "failed" : "done";

/** Whoever may not ask any more may not read the answer either. */
function allowToRead(actor: Actor, { kind, target }: JobRow): void {
  if (kind === "agent_details") allow(actor, "jobs.request_details");
  if (kind === "agent_data") allowOnAgent(actor, "jobs.request_data", target ?? "");
}

/** As the index of jobs names whom a job belongs to. */
export const ownerOf = ({ id, kind, name }: Actor) => ({
  ownerId: id,
  owner: `${kind === "admin" ? "user" : kind}:${name}`,
});

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

function refuseLongKey(key: string | undefined): void {
  if ((key?.length ?? 0) <= MAX_KEY_LENGTH) return;
  const msg = `String should have at most ${MAX_KEY_LENGTH} characters`;
  throw new Invalid([{ loc: ["header", "Idempotency-Key"], msg, type: "string_too_long" }]);
}
