import type { AuditActor } from "../accounts/audit.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeJob, canAccessAnyJob } from "../auth/permissions.ts";
import type { Outbox } from "../broker/outbox.ts";
import { Conflict, Invalid, NotFound, TooLarge, TooMany } from "../lib/errors.ts";
import { type CallbackResponse, type CommandResult, type JobKind, type JobState, ObjectItems } from "../schemas/job.ts";
import type { JobCache } from "./job-cache.ts";
import type { JobStore } from "./job-store.ts";
import { MAX_KEY_LENGTH } from "./stream/idempotency.ts";
import type { Posted } from "./stream/job-stream.ts";
import type { NewMessage } from "./stream/message-buffer.ts";
import type { ClosedState } from "./stream/message-store.ts";
import type { StreamClient } from "./stream/stream-client.ts";

/** What others have to say to whoever reads a job, and what that says of the job itself. */
export interface Callbacks {
  take(actor: Actor, kind: CallbackKind, callback: Callback): Promise<CallbackResponse>;
  /** An agent's answer to a command, which came by way of the broker. */
  acceptCommandResult(apId: string, result: CommandResult, requestId: string): Promise<void>;
}

export type CallbackKind = Exclude<JobKind, "stream">;

export interface Callback {
  jobNumber: string;
  /** JSON text. */
  data: string;
  /** Of several callbacks with the same key only the first counts. */
  key?: string | undefined;
}

const RESULT_KEY = "result";

/** States that a callback can bring a job to. */
type ProgressState = Exclude<JobState, "queued" | "cancelled" | "expired">;

/** Records what a callback's data says about the job itself, and returns the state that the job reaches by it, if any. */
export type ReportHandler = (jobNumber: string, data: string) => Promise<ProgressState | undefined>;

export interface CallbacksOptions {
  index: JobStore;
  known: JobCache;
  streams: Pick<StreamClient, "post">;
  outbox: Pick<Outbox, "withdraw">;
  /** Handles callbacks about emulator jobs. */
  emulatorReports: ReportHandler;
}

export function createCallbacks({ index, known, streams, outbox, emulatorReports }: CallbacksOptions): Callbacks {
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
  const advance = async (jobNumber: string, state: ProgressState, by: AuditActor): Promise<void> => {
    const standing = await index.note(jobNumber, { state }, by);
    if (standing === "cancelled" || standing === "expired") throw closed(standing);
  };

  return {
    async take(actor, kind, { jobNumber, data, key }) {
      const action = `callbacks.${kind}` as const;
      authorize(actor, action);
      refuseLongKey(key);
      const job = await known.find(jobNumber);
      if (job !== undefined) authorizeJob(actor, action, job);
      // A subscriber does not take a number from its reader.
      else if (!canAccessAnyJob(actor, action)) authorizeJob(actor, action, await known.claim(actor, jobNumber));
      const isResult = kind === "command" && job?.kind === "command";
      if (isResult) await advance(jobNumber, statusIn(data), actor);
      const isReport = kind === "emulator" && job?.kind === "emulator";
      const reported = isReport ? await emulatorReports(jobNumber, data) : undefined;
      if (reported !== undefined) await advance(jobNumber, reported, actor);
      const isLast = isResult || reported === "done" || reported === "failed";
      const { seq, delivered, queued } = await post(jobNumber, { type: kind, data, key, final: isLast });
      // Only then: until its answer is stored, a command is published again.
      if (isResult) await outbox.withdraw(jobNumber);
      const detail = queued ? "Stored until a socket connects" : `Sent to ${delivered} of the job's sockets`;
      return { status: "success", job_number: jobNumber, seq, delivered, queued, detail };
    },

    async acceptCommandResult(apId, { job_number, status, data }, requestId) {
      const job = await known.find(job_number);
      if (job?.target !== apId) throw new NotFound("Job");
      const isResult = job.kind === "command";
      if (isResult) await advance(job_number, status, { kind: "agent", name: apId, requestId });
      // One answer to a command, however often the broker brings it.
      await post(job_number, {
        type: "command",
        data: JSON.stringify([{ status, data }]),
        final: true,
        key: RESULT_KEY,
      });
      if (isResult) await outbox.withdraw(job_number);
    },
  };
}

const closed = (state: ClosedState): Conflict =>
  new Conflict(state === "cancelled" ? "The job was cancelled" : "The job has expired");

/** An answer that comes by HTTP may say how it went, as one by way of the broker has to. */
const statusIn = (data: string): CommandResult["status"] =>
  ObjectItems.parse(JSON.parse(data)).some(({ status }) => status === "failed") ? "failed" : "done";

function refuseLongKey(key: string | undefined): void {
  if ((key?.length ?? 0) <= MAX_KEY_LENGTH) return;
  const msg = `String should have at most ${MAX_KEY_LENGTH} characters`;
  throw new Invalid([{ loc: ["header", "Idempotency-Key"], msg, type: "string_too_long" }]);
}
