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

/** What became of a message. Not an exception: those lose their kind on the way out of an object. */
export type Posted =
  | Exclude<Appended, { outcome: "stored" }>
  /** `delivered`: to how many sockets; `queued`: no socket has been sent it yet. */
  | { outcome: "stored"; seq: number; delivered: number; queued: boolean };

export interface JobDescription {
  /** Ever. */
  messages: number;
  retained: number;
  retainedBytes: number;
  acknowledgedUpTo: number;
  sockets: number;
  closed: ClosedState | undefined;
  /** Of what the service itself produces for the job. */
  rows: { sent: number; estimated: number | null } | undefined;
}

/** While sockets are open, somebody was there to read: noted now and then, for the case that all of it ends at once. So is the index. */
const TOUCH_EVERY_MS = 60 * 60 * 1000;
const INDEX_TOLD_KEY = "index told";
const UNREAD_SINCE_KEY = "unread since";

/** One for all objects of an isolate, which may be thousands, as the Worker has one for all requests. Made when first needed. */
let stores: JobStreamDependencies | undefined;

/** One job's stream: its sockets, and the messages that nobody has acknowledged yet. */
export class JobStream extends DurableObject<Env> {
  readonly #buffer: MessageBuffer;
  readonly #sockets: JobSockets;
  readonly #production: ProducerRunner;
  /** As the service's figures were last told, if this is known. */
  #toldSockets: number | undefined;
  /** When the alarm is set for, if this is known. */
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
    this.#production = new ProducerRunner({
      storage: ctx.storage,
      producerOf: (work) => this.#its.producerOf(work),
      hasRoomFor: (messages) => this.#buffer.hasRoomFor(messages),
      append: (message) => this.#buffer.append(message),
      deliver: async () => {
        await this.#sockets.deliver();
        await this.#settle();
      },
      throttle: (bytes) => this.throttle(bytes),
      note: (jobNumber, change) => this.#report(this.#its.index, jobNumber, change),
      unreadSinceMs: () => (this.#sockets.count > 0 ? undefined : this.#unreadSinceMs),
      now,
    });
  }

  /** Has the service produce what the job asks for. It goes on by itself, also after this object's end. */
  async start(jobNumber: string, work: ProducerInput): Promise<void> {
    this.#production.begin(jobNumber, work);
    await this.#settle();
    this.#goOn();
  }

  /**
   * Stores a message, then sends it. The platform lets neither the answer nor anything to a socket out before what was written
   * is on disk (output gates): whoever is told "stored", or has a message, can rely on it whatever happens to this object.
   */
  async post(message: NewMessage): Promise<Posted> {
    const appended = this.#buffer.append(message);
    if (appended.outcome !== "stored") return appended;
    await this.#sockets.deliver();
    await this.#settle();
    const { seq } = appended;
    return { ...appended, delivered: this.#sockets.countAt(seq), queued: seq > this.#buffer.sentUpTo };
  }

  /** Opens a socket. The request is one that `toUpgrade` made. */
  override async fetch(request: Request): Promise<Response> {
    const { opening, protocol } = decodeHandshake(request);
    // From before the look-up: what it finds may have changed by the time it is back.
    const checkedMs = Date.now();
    const refused = this.#refusal() ?? (await this.#refusalOf(opening.reader)) ?? this.#refusal();
    if (refused !== undefined) return refused;
    // From here to the last message that was stored so far nothing waits, so nothing comes in between.
    this.#buffer.expire();
    const webSocket = this.#sockets.accept(opening, checkedMs);
    const { closed } = this.#buffer;
    if (closed !== undefined) this.#sockets.closeAll(CLOSE[closed]);
    this.#tellSockets();
    await this.#settle();
    this.#goOn();
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
      rows: this.#production.rows,
    };
  }

  /** Nothing more is taken. What is there can still be read, by sockets that are closed when they have it. */
  async close(state: ClosedState): Promise<void> {
    this.#production.stop();
    this.#buffer.close(state);
    this.#sockets.closeAll(CLOSE[state]);
    await this.#settle();
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    if (this.#sockets.receive(socket, message)) await this.#settle();
    this.#goOn();
  }

  override async webSocketClose(socket: WebSocket, code: number): Promise<void> {
    // The client's Close wants one in return, else it would report 1006.
    socket.close(echoedCloseCode(code));
    this.#tellSockets();
    this.#buffer.touch();
    await this.#settle();
    this.#goOn();
  }

  override async webSocketError(): Promise<void> {
    this.#tellSockets();
    this.#buffer.touch();
    await this.#settle();
  }

  /** One alarm for all that is to be done at its time: messages that are too old, tokens that are over, access, the end. */
  override async alarm(): Promise<void> {
    this.#alarmMs = undefined;
    this.#buffer.expire();
    await this.#sockets.recheck();
    await this.#sockets.deliver();
    // Those of a service that was killed went without a word; the alarm that was set for them comes all the same.
    if (this.#sockets.count === 0) this.#tellSockets();
    if (this.#sockets.count > 0 && Date.now() - this.#buffer.touchedMs >= TOUCH_EVERY_MS) this.#buffer.touch();
    if (!this.#buffer.isEmpty && Date.now() - this.#indexToldMs >= TOUCH_EVERY_MS) {
      this.ctx.storage.kv.put(INDEX_TOLD_KEY, Date.now());
      await this.#index((index, jobNumber) => this.#report(index, jobNumber));
    }
    await this.#settle();
    this.#goOn();
  }

  /** Kept, since the object sleeps between one alarm and the next. */
  get #indexToldMs(): number {
    return Number(this.ctx.storage.kv.get(INDEX_TOLD_KEY) ?? 0);
  }

  get #unreadSinceMs(): number | undefined {
    const sinceMs = this.ctx.storage.kv.get(UNREAD_SINCE_KEY);
    return sinceMs === undefined ? undefined : Number(sinceMs);
  }

  /** Keeps when the last reader left. Sockets of a service that was killed leave no trace: they left when this is called next. */
  #recordReaders(): void {
    if (!this.#production.isUnfinished) return;
    const isRecorded = this.#unreadSinceMs !== undefined;
    if (this.#sockets.count > 0 && isRecorded) this.ctx.storage.kv.delete(UNREAD_SINCE_KEY);
    if (this.#sockets.count === 0 && !isRecorded) this.ctx.storage.kv.put(UNREAD_SINCE_KEY, Date.now());
  }

  /** Tells the index how far the job has come. A job that was cancelled there, because its owner was deleted, ends here. */
  async #report(index: JobStore, jobNumber: string, change: { state?: JobState; detail?: string } = {}): Promise<void> {
    const standing = await index.note(jobNumber, { ...change, messages: this.#buffer.lastSeq });
    if (standing !== "cancelled" && standing !== "expired") return;
    if (this.#buffer.closed === undefined) await this.close(standing);
  }

  /** For the figures of the service. Nobody waits for it; where it does not get there, the next change or the alarm sets it right. */
  #tellSockets(): void {
    const { name } = this.ctx.id;
    const { count } = this.#sockets;
    if (name === undefined || count === this.#toldSockets) return;
    this.#toldSockets = count;
    const told = ledgerOf(this.env.LEDGER).setSockets(name, count);
    this.ctx.waitUntil(
      told.catch((error: unknown) => {
        this.#toldSockets = undefined;
        log.warn("open sockets not told", { error: describeError(error) });
      }),
    );
  }

  /** Something has changed: what the service produces for the job may go on. */
  #goOn(): void {
    if (Number.isFinite(this.#production.nextDueMs)) this.ctx.waitUntil(this.#produce());
  }

  async #produce(): Promise<void> {
    await this.#production.run();
    await this.#settle();
  }

  /** Whether the service's own production may go on with a message of about that size. */
  throttle(bytes: number): Throttle {
    const flow: FlowState = { sockets: this.#sockets.flow, room: this.#buffer.room };
    return throttle(flow, bytes, SOCKET_LIMITS.unacknowledgedBytes);
  }

  #refusal(): Response | undefined {
    return this.#sockets.isFull ? refuse(429, "Too many sockets for this job", 60) : undefined;
  }

  async #refusalOf(reader: Reader): Promise<Response | undefined> {
    if (reader.expiresAtMs <= Date.now()) return refuse(401, "Could not validate credentials");
    try {
      return (await this.#isCredentialCurrent(reader)) ? undefined : refuse(403, "Not enough permissions");
    } catch (error) {
      log.warn("a reader's access could not be checked", { error: describeError(error) });
      return refuse(503, "The accounts database is not available at the moment", 2);
    }
  }

  #isCredentialCurrent(credential: CredentialRef): Promise<boolean> {
    return this.#its.isCredentialCurrent(credential);
  }

  get #its(): JobStreamDependencies {
    stores ??= createJobStreamDependencies(parseEnv(this.env), this.env);
    return stores;
  }

  /** After whatever happened: lets go of what nobody needs any more, and sets the alarm for what comes next. */
  async #settle(): Promise<void> {
    this.#buffer.release(this.#sockets.neededAfter);
    this.#recordReaders();
    const endMs = this.#endMs;
    if (endMs <= Date.now()) return await this.#end();
    const dueMs = Math.min(this.#sockets.nextDueMs, this.#buffer.nextExpiryMs, this.#production.nextDueMs, endMs);
    // One that comes too early finds nothing to do and is set again. To move it each time would be a write for every message.
    if (this.#alarmMs !== undefined && this.#alarmMs <= dueMs) return;
    // Where it is not known it is not asked for but set, which goes to disk together with what was stored just now.
    this.#alarmMs = dueMs;
    await this.ctx.storage.setAlarm(dueMs);
  }

  /** When nothing of the job is to be left: not while a socket is open, and at once where it never had a message. */
  get #endMs(): number {
    if (this.#sockets.count > 0 || this.#production.isUnfinished) return Number.POSITIVE_INFINITY;
    return this.#buffer.isEmpty ? 0 : this.#buffer.touchedMs + BUFFER_LIMITS.retentionMs;
  }

  async #end(): Promise<void> {
    const hadMessages = !this.#buffer.isEmpty;
    await this.#wipe();
    // Best effort: the index lets go of what it has not heard of for long.
    if (hadMessages) await this.#index((index, jobNumber) => index.remove(jobNumber));
  }

  async #index(work: (index: JobStore, jobNumber: string) => Promise<unknown>): Promise<void> {
    const { name } = this.ctx.id;
    if (name === undefined) return;
    try {
      await work(this.#its.index, name);
    } catch (error) {
      log.warn("the index of jobs was not told", { error: describeError(error) });
    }
  }

  async #wipe(): Promise<void> {
    // Both at once: nothing may come in between and be half deleted.
    const deleted = Promise.all([this.ctx.storage.deleteAlarm(), this.ctx.storage.deleteAll()]);
    this.#buffer.forget();
    this.#production.forget();
    this.#alarmMs = undefined;
    await deleted;
  }
}

function refuse(status: number, detail: string, retryAfterS?: number): Response {
  const headers = retryAfterS === undefined ? {} : { "Retry-After": String(retryAfterS) };
  return Response.json({ detail }, { status, headers });
}
