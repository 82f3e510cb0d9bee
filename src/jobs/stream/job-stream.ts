import { DurableObject } from "cloudflare:workers";
import type { CredentialRef } from "../../accounts/login/credential-check.ts";
import { parseEnv } from "../../env.ts";
import { describeError, log } from "../../lib/log.ts";
import { ledgerOf } from "../../monitoring/ledger.ts";
import type { JobState } from "../../schemas/job.ts";
import { BUFFER_LIMITS, CLOSE, echoedCloseCode, SOCKET_LIMITS } from "../../schemas/stream-protocol.ts";
import type { JobStore } from "../job-store.ts";
import { type FlowState, type Throttle, throttle } from "../producers/flow-control.ts";
import type { ProducerInput } from "../producers/producer.ts";
import { ProducerRunner } from "../producers/producer-runner.ts";
import { createJobStreamDependencies, type JobStreamDependencies } from "./dependencies.ts";
import { decodeHandshake, type Reader } from "./handshake.ts";
import { type Appended, MessageBuffer, type NewMessage } from "./message-buffer.ts";
import type { ClosedState } from "./message-store.ts";
import { JobSockets } from "./sockets.ts";

/** The result of a post. Not an exception, because exceptions lose their class between objects. */
export type Posted =
  | Exclude<Appended, { outcome: "stored" }>
  /** `delivered`: how many sockets were sent it; `queued`: no socket was sent it yet. */
  | { outcome: "stored"; seq: number; delivered: number; queued: boolean };

export interface JobDescription {
  /** All messages the job ever had. */
  messages: number;
  retained: number;
  retainedBytes: number;
  acknowledgedUpTo: number;
  sockets: number;
  closed: ClosedState | undefined;
  /** The rows of the service's own producer, if the job has one. */
  rows: { sent: number; estimated: number | null } | undefined;
}

/** How often open sockets are recorded as activity, in case the service is killed, and how often the job store is updated. */
const ACTIVITY_INTERVAL_MS = 60 * 60 * 1000;
/** Keys of stored values: they must not change. */
const JOB_STORE_UPDATED_KEY = "index told";
const UNREAD_SINCE_KEY = "unread since";

/** Shared by all objects of an isolate, which may be thousands. Created on first use. */
let dependencies: JobStreamDependencies | undefined;

/** One job's stream: its sockets, its unacknowledged messages, and the service's own producer. */
export class JobStream extends DurableObject<Env> {
  readonly #buffer: MessageBuffer;
  readonly #sockets: JobSockets;
  readonly #producer: ProducerRunner;
  /** How often `recheck` was called. */
  #rechecks = 0;
  /** The last count that was reported to the service metrics, if known. */
  #reportedSockets: number | undefined;
  /** The time of the alarm, if known. */
  #alarmMs: number | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const now = () => Date.now();
    this.#buffer = new MessageBuffer({ storage: ctx.storage, limits: BUFFER_LIMITS, now });
    this.#sockets = new JobSockets({
      ctx,
      buffer: this.#buffer,
      isCredentialCurrent: (credential) => this.#isCredentialCurrent(credential),
      limits: SOCKET_LIMITS,
      now,
    });
    this.#producer = new ProducerRunner({
      storage: ctx.storage,
      createProducer: (input) => this.#dependencies.createProducer(input),
      hasRoomFor: (messages) => this.#buffer.hasRoomFor(messages),
      append: (message) => this.#buffer.append(message),
      deliver: async () => {
        await this.#sockets.deliver();
        await this.#scheduleNext();
      },
      throttle: (bytes) => this.throttle(bytes),
      reportState: (jobNumber, change) => this.#report(this.#dependencies.jobStore, jobNumber, change),
      unreadSinceMs: () => (this.#sockets.count > 0 ? undefined : this.#unreadSinceMs),
      now,
    });
  }

  /** Starts the service's own producer. It continues by itself, even after this object was evicted. */
  async start(jobNumber: string, input: ProducerInput): Promise<void> {
    this.#producer.begin(jobNumber, input);
    await this.#scheduleNext();
    this.#resumeProducer();
  }

  /**
   * Stores messages, then sends them. Returns the result of each. The platform's output gates hold back both the results and the sockets
   * until the messages are on disk. So a caller that gets "stored", and a reader that gets the message, can rely on it.
   */
  async post(messages: readonly NewMessage[]): Promise<Posted[]> {
    const appended = messages.map((message) => this.#buffer.append(message));
    if (appended.some(({ outcome }) => outcome === "stored")) {
      await this.#sockets.deliver();
      await this.#scheduleNext();
    }
    return appended.map((result) => {
      if (result.outcome !== "stored") return result;
      const { seq } = result;
      return { ...result, delivered: this.#sockets.countSentUpTo(seq), queued: seq > this.#buffer.sentUpTo };
    });
  }

  /** Opens a socket for a request made by `encodeHandshake`. */
  override async fetch(request: Request): Promise<Response> {
    const { handshake, protocol } = decodeHandshake(request);
    // Taken before the check: the account may change before its result arrives.
    const checkedMs = Date.now();
    // The last socket may be taken while the access check runs, so count them again.
    const refused = this.#refuseIfFull() ?? (await this.#refuseIfNotAllowed(handshake.reader)) ?? this.#refuseIfFull();
    if (refused !== undefined) return refused;
    // No await until the stored messages were sent, so that no other message is sent in between.
    this.#buffer.expire();
    const webSocket = this.#sockets.accept(handshake, checkedMs);
    const { closed } = this.#buffer;
    if (closed !== undefined) this.#sockets.closeAll(CLOSE[closed]);
    this.#reportSocketCount();
    await this.#scheduleNext();
    this.#resumeProducer();
    const headers = protocol === undefined ? {} : { "Sec-WebSocket-Protocol": protocol };
    return new Response(null, { status: 101, webSocket, headers });
  }

  async describe(): Promise<JobDescription> {
    const { lastSeq, messages, bytes, acknowledgedUpTo, closed } = this.#buffer;
    return {
      messages: lastSeq,
      retained: messages,
      retainedBytes: bytes,
      acknowledgedUpTo,
      sockets: this.#sockets.count,
      closed,
      rows: this.#producer.rows,
    };
  }

  /** Rejects further messages and closes the sockets. A later socket gets the stored messages and is closed then. */
  async close(state: ClosedState): Promise<void> {
    this.#producer.stop();
    this.#buffer.close(state);
    this.#sockets.closeAll(CLOSE[state]);
    await this.#scheduleNext();
  }

  /** Checks the access of all readers now, because an account or an agent has changed. */
  async recheck(): Promise<void> {
    this.#rechecks++;
    if (this.#sockets.count === 0) return;
    await this.#sockets.recheckAll();
    await this.#scheduleNext();
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    if (this.#sockets.receive(socket, message)) await this.#scheduleNext();
    this.#resumeProducer();
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    // Without a Close frame in return, the client would report code 1006.
    socket.close(echoedCloseCode(code));
    this.#reportSocketCount();
    this.#buffer.recordActivity();
    await this.#scheduleNext();
    this.#resumeProducer();
  }

  override async webSocketError(): Promise<void> {
    this.#reportSocketCount();
    this.#buffer.recordActivity();
    await this.#scheduleNext();
  }

  /** Handles everything with a due time: expired messages and tokens, access checks, the producer, and the job's end. */
  override async alarm(): Promise<void> {
    this.#alarmMs = undefined;
    this.#buffer.expire();
    await this.#sockets.recheck();
    await this.#sockets.deliver();
    // If the service was killed, its sockets closed without an event. Their alarm still runs and corrects the count.
    if (this.#sockets.count === 0) this.#reportSocketCount();
    if (this.#sockets.count > 0 && Date.now() - this.#buffer.lastActiveMs >= ACTIVITY_INTERVAL_MS)
      this.#buffer.recordActivity();
    if (!this.#buffer.isEmpty && Date.now() - this.#jobStoreUpdatedMs >= ACTIVITY_INTERVAL_MS) {
      this.ctx.storage.kv.put(JOB_STORE_UPDATED_KEY, Date.now());
      await this.#updateJobStore((jobStore, jobNumber) => this.#report(jobStore, jobNumber));
    }
    await this.#scheduleNext();
    this.#resumeProducer();
  }

  /** Stored, because the object sleeps between alarms. */
  get #jobStoreUpdatedMs(): number {
    return Number(this.ctx.storage.kv.get(JOB_STORE_UPDATED_KEY) ?? 0);
  }

  get #unreadSinceMs(): number | undefined {
    const sinceMs = this.ctx.storage.kv.get(UNREAD_SINCE_KEY);
    return sinceMs === undefined ? undefined : Number(sinceMs);
  }

  /** Stores when the last reader left. After a kill no event reports that sockets closed, so the next call stores its own time. */
  #recordReaders(): void {
    if (!this.#producer.isUnfinished) return;
    const isRecorded = this.#unreadSinceMs !== undefined;
    if (this.#sockets.count > 0 && isRecorded) this.ctx.storage.kv.delete(UNREAD_SINCE_KEY);
    if (this.#sockets.count === 0 && !isRecorded) this.ctx.storage.kv.put(UNREAD_SINCE_KEY, Date.now());
  }

  /** Updates the job store. If the job was cancelled or expired there, for example with its owner's account, closes the stream. */
  async #report(
    jobStore: JobStore,
    jobNumber: string,
    change: { state?: JobState; detail?: string } = {},
  ): Promise<void> {
    const current = await jobStore.update(jobNumber, { ...change, messages: this.#buffer.lastSeq });
    if (current !== "cancelled" && current !== "expired") return;
    if (this.#buffer.closed === undefined) await this.close(current);
  }

  /** Reports the number of sockets to the service metrics, without waiting. If that fails, the next change or alarm corrects it. */
  #reportSocketCount(): void {
    const { name } = this.ctx.id;
    const { count } = this.#sockets;
    if (name === undefined || count === this.#reportedSockets) return;
    this.#reportedSockets = count;
    const reported = ledgerOf(this.env.LEDGER).setSockets(name, count);
    this.ctx.waitUntil(
      reported.catch((error: unknown) => {
        this.#reportedSockets = undefined;
        log.warn("socket count not reported", { error: describeError(error) });
      }),
    );
  }

  /** Continues producing, if there is something left to produce. To be called after every change. */
  #resumeProducer(): void {
    if (Number.isFinite(this.#producer.nextDueMs)) this.ctx.waitUntil(this.#produce());
  }

  async #produce(): Promise<void> {
    await this.#producer.run();
    await this.#scheduleNext();
  }

  /** Whether the producer may continue with a message of about this size. */
  throttle(bytes: number): Throttle {
    const flow: FlowState = { sockets: this.#sockets.flow, room: this.#buffer.room };
    return throttle(flow, bytes, SOCKET_LIMITS.unacknowledgedBytes);
  }

  #refuseIfFull(): Response | undefined {
    return this.#sockets.isFull ? refuse(429, "Too many sockets for this job", 60) : undefined;
  }

  async #refuseIfNotAllowed(reader: Reader): Promise<Response | undefined> {
    if (reader.expiresAtMs <= Date.now()) return refuse(401, "Could not validate credentials");
    try {
      // A recheck during the query does not see the new socket, and the query may not have seen what changed.
      for (let rechecks = -1; rechecks !== this.#rechecks; ) {
        rechecks = this.#rechecks;
        if (!(await this.#isCredentialCurrent(reader))) return refuse(403, "Not enough permissions");
      }
      return undefined;
    } catch (error) {
      log.warn("reader access check failed", { error: describeError(error) });
      return refuse(503, "The accounts database is not available at the moment", 2);
    }
  }

  #isCredentialCurrent(credential: CredentialRef): Promise<boolean> {
    return this.#dependencies.isCredentialCurrent(credential);
  }

  get #dependencies(): JobStreamDependencies {
    dependencies ??= createJobStreamDependencies(parseEnv(this.env), this.env);
    return dependencies;
  }

  /** Drops messages that are no longer needed, and sets the alarm. To be called after every change. */
  async #scheduleNext(): Promise<void> {
    this.#buffer.release(this.#sockets.neededAfter);
    this.#recordReaders();
    const endMs = this.#endMs;
    if (endMs <= Date.now()) return await this.#dispose();
    const dueMs = Math.min(this.#sockets.nextDueMs, this.#buffer.nextExpiryMs, this.#producer.nextDueMs, endMs);
    // An early alarm finds nothing to do and is set again. Postponing it would cost a write for every message.
    if (this.#alarmMs !== undefined && this.#alarmMs <= dueMs) return;
    // If its time is unknown, set it without reading it: the platform writes it together with the message just stored.
    this.#alarmMs = dueMs;
    await this.ctx.storage.setAlarm(dueMs);
  }

  /** When to delete the job: never while a socket is open or the producer runs, immediately if it never had a message. */
  get #endMs(): number {
    if (this.#sockets.count > 0 || this.#producer.isUnfinished) return Number.POSITIVE_INFINITY;
    return this.#buffer.isEmpty ? 0 : this.#buffer.lastActiveMs + BUFFER_LIMITS.retentionMs;
  }

  async #dispose(): Promise<void> {
    const hadMessages = !this.#buffer.isEmpty;
    await this.#deleteAll();
    // Best effort: the job store deletes rows that were not updated for long.
    if (hadMessages) await this.#updateJobStore((jobStore, jobNumber) => jobStore.remove(jobNumber));
  }

  /** Logs a failure instead of throwing: an outage of libSQL must not stop the stream. */
  async #updateJobStore(update: (jobStore: JobStore, jobNumber: string) => Promise<unknown>): Promise<void> {
    const { name } = this.ctx.id;
    if (name === undefined) return;
    try {
      await update(this.#dependencies.jobStore, name);
    } catch (error) {
      log.warn("job store update failed", { error: describeError(error) });
    }
  }

  async #deleteAll(): Promise<void> {
    // Both without an await in between, so that no other event sees half of the storage deleted.
    const deleted = Promise.all([this.ctx.storage.deleteAlarm(), this.ctx.storage.deleteAll()]);
    this.#buffer.forget();
    this.#producer.forget();
    this.#alarmMs = undefined;
    await deleted;
  }
}

function refuse(status: number, detail: string, retryAfterS?: number): Response {
  const headers = retryAfterS === undefined ? {} : { "Retry-After": String(retryAfterS) };
  return Response.json({ detail }, { status, headers });
}
