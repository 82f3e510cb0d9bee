import * as z from "zod";
import type { AuditActor } from "../accounts/audit.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize, authorizeJob, canAccessAny } from "../auth/permissions.ts";
import type { Outbox } from "../broker/outbox.ts";
import { encodeJson, type JsonText } from "../lib/encoding.ts";
import { Conflict, NotFound, TooLarge, TooMany } from "../lib/errors.ts";
import type { CallbackResponse, CommandResult, JobKind, JobState } from "../schemas/job.ts";
import type { JobCache } from "./job-cache.ts";
import type { JobStore } from "./job-store.ts";
import type { Posted } from "./stream/job-stream.ts";
import type { NewMessage } from "./stream/message-buffer.ts";
import type { ClosedState } from "./stream/message-store.ts";
import type { StreamClient } from "./stream/stream-client.ts";

/** Adds messages from callback clients and agents to a job's stream, and updates the job's state from them. */
export interface Callbacks {
  accept(actor: Actor, kind: CallbackKind, callback: Callback): Promise<CallbackResponse>;
  /** Accepts an agent's result of a command that arrived through the broker. */
  acceptCommandResult(apId: string, result: CommandResult, requestId: string): Promise<void>;
}

export type CallbackKind = Exclude<JobKind, "stream">;

export interface Callback {
  jobNumber: string;
  /** The parsed and validated body. */
  items: readonly unknown[];
  /** The same body as the caller sent it. Readers get this text. */
  text: JsonText;
  /** Idempotency key: of several callbacks with the same key, only the first counts. */
  key?: string | undefined;
}

const RESULT_KEY = "result";

/** States that a callback can move a job to. */
type ProgressState = Exclude<JobState, "queued" | "cancelled" | "expired">;

/** Records the reports in a callback's items. Returns the job's new state if they change it. */
export type ReportHandler = (jobNumber: string, items: readonly unknown[]) => Promise<ProgressState | undefined>;

export interface CallbacksOptions {
  jobStore: JobStore;
  jobCache: JobCache;
  streams: Pick<StreamClient, "post">;
  outbox: Pick<Outbox, "withdraw">;
  /** Handles callbacks about emulator jobs. */
  emulatorReports: ReportHandler;
}

export function createCallbacks(options: CallbacksOptions): Callbacks {
  const { jobStore, jobCache, streams, outbox, emulatorReports } = options;

  const post = async (jobNumber: string, message: NewMessage): Promise<Posted & { outcome: "stored" }> => {
    const posted = await streams.post(jobNumber, message);
    switch (posted.outcome) {
      case "full":
        throw new TooMany(posted.retryAfterS);
      case "too_large":
        throw new TooLarge();
      case "closed":
        throw closedError(posted.state);
      case "stored":
        return posted;
    }
  };

  /** Stores the job's new state before a reader can see the message. Throws if the job was cancelled or has expired. */
  const advance = async (jobNumber: string, state: ProgressState, by: AuditActor): Promise<void> => {
    const current = await jobStore.update(jobNumber, { state }, by);
    if (current === "cancelled" || current === "expired") throw closedError(current);
  };

  return {
    async accept(actor, kind, { jobNumber, items, text, key }) {
      const action = `callbacks.${kind}` as const;
      authorize(actor, action);
      const job = await jobCache.find(jobNumber);
      if (job !== undefined) authorizeJob(actor, action, job);
      // A caller that may post to any job does not claim an unused number: the first reader does.
      else if (!canAccessAny(actor, action)) authorizeJob(actor, action, await jobCache.claim(actor, jobNumber));
      const isResult = kind === "command" && job?.kind === "command";
      if (isResult) await advance(jobNumber, resultStatus(items), actor);
      const isReport = kind === "emulator" && job?.kind === "emulator";
      const reported = isReport ? await emulatorReports(jobNumber, items) : undefined;
      if (reported !== undefined) await advance(jobNumber, reported, actor);
      const isLast = isResult || reported === "done" || reported === "failed";
      const { seq, delivered, queued } = await post(jobNumber, { type: kind, data: text, key, final: isLast });
      // Withdraw only now: the publisher must repeat a command until its result is stored.
      if (isResult) await outbox.withdraw(jobNumber);
      const detail = queued ? "Stored until a socket connects" : `Sent to ${delivered} of the job's sockets`;
      return { status: "success", job_number: jobNumber, seq, delivered, queued, detail };
    },

    async acceptCommandResult(apId, { job_number, status, data }, requestId) {
      const job = await jobCache.find(job_number);
      if (job?.target !== apId) throw new NotFound("Job");
      const isResult = job.kind === "command";
      if (isResult) await advance(job_number, status, { kind: "agent", name: apId, requestId });
      // The key deduplicates: the broker may deliver a result more than once.
      await post(job_number, {
        type: "command",
        data: encodeJson([{ status, data }]),
        final: true,
        key: RESULT_KEY,
      });
      if (isResult) await outbox.withdraw(job_number);
    },
  };
}

const closedError = (state: ClosedState): Conflict =>
  new Conflict(state === "cancelled" ? "The job was cancelled" : "The job has expired");

const FailedItem = z.object({ status: z.literal("failed") });

/** Returns a command's outcome. A result over HTTP may omit the status, and counts as done then. */
const resultStatus = (items: readonly unknown[]): CommandResult["status"] =>
  items.some((item) => FailedItem.safeParse(item).success) ? "failed" : "done";
