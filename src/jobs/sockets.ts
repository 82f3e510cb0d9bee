import { describeError, log } from "../log.ts";
import { Acknowledgement, KEEP_ALIVE } from "../schemas/stream.ts";
import type { StillAllowed } from "./access.ts";
import type { PendingBuffer } from "./buffer.ts";
import { CLOSE, type Close } from "./close-codes.ts";
import { gapToWire, toWire } from "./envelope.ts";
import type { Opening, Reader } from "./opening.ts";
import { noteAcknowledged, noteSent, nothingOutstanding, outstandingBytes } from "./outstanding.ts";
import type { Flow } from "./pace.ts";
import { type SocketState, SocketStates } from "./socket-state.ts";

/**
 * The sockets of a job. They outlive the object in memory: what it knows of each is in the socket's attachment, and read when it is
 * needed. A socket is always sent what comes after the last message that it was sent, in one go without waiting in between; so
 * it gets every message once and in order, however posts, checks and connections mingle.
 */
export interface SocketLimits {
  sockets: number;
  /** Of one socket. The platform does not say how much lies in a connection unread; what is not acknowledged may. */
  unacknowledgedBytes: number;
}

export const SOCKET_LIMITS: SocketLimits = { sockets: 16, unacknowledgedBytes: 16 * 1024 * 1024 };

/** How long a check of a reader's access holds: as long as a session elsewhere in the service. */
const CHECK_HOLDS_MS = 5_000;
/**
 * How often access is checked where nothing is sent, and so nothing given away. Each check wakes a sleeping object, which then takes
 * three files and some 200 KB for ten seconds.
 */
const RECHECK_MS = 5 * 60_000;
/** After how long a check is tried again that could not be made: where a message waits for it, and where none does. */
const RETRY_MS = 5_000;
const RETRY_IDLE_MS = 60_000;

const MAX_CLIENT_MESSAGE_LENGTH = 1_024;

export interface SocketsOptions {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "setWebSocketAutoResponse">;
  buffer: PendingBuffer;
  stillAllowed: StillAllowed;
  limits: SocketLimits;
  now: () => number;
}

interface Access {
  isAllowed: boolean;
  askedMs: number;
}

export class JobSockets {
  readonly #options: SocketsOptions;
  readonly #states = new SocketStates();
  /** One check at a time for each socket; whoever comes meanwhile waits for the same. */
  readonly #checks = new Map<WebSocket, Promise<void>>();
  /** What is being asked of the accounts, by reader: many sockets may be one reader's. */
  readonly #lookUps = new Map<string, Promise<Access>>();

  constructor(options: SocketsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.length;
  }

  get isFull(): boolean {
    return this.count >= this.#options.limits.sockets;
  }

  /** How many sockets have a message. */
  countAt(seq: number): number {
    return this.#open.filter((socket) => this.#states.of(socket).sentUpTo >= seq).length;
  }

  /** Messages after this number are yet to be sent to some socket. */
  get neededAfter(): number {
    return Math.min(...this.#open.map((socket) => this.#states.of(socket).sentUpTo));
  }

  get flow(): Flow["sockets"] {
    return this.#open.map((socket) => {
      const { outstanding, hasAcknowledged } = this.#states.of(socket);
      return { unacknowledgedBytes: outstandingBytes(outstanding), hasAcknowledged };
    });
  }

  /** When something is to be done even though nobody comes; never where no socket is open. */
  get nextDueMs(): number {
    const nowMs = this.#options.now();
    const due = this.#open.flatMap((socket) => {
      const { reader, checkedMs, sentUpTo } = this.#states.of(socket);
      const isBehind = sentUpTo < this.#options.buffer.lastSeq;
      return [reader.expiresAtMs, isBehind ? nowMs + RETRY_MS : nextIdleCheckMs(checkedMs, nowMs)];
    });
    return Math.min(...due);
  }

  /** Accepts a socket whose reader was just found to be allowed, and sends it what is there. Returns the client's end. */
  accept({ jobNumber, reader, form, after = 0 }: Opening, checkedMs: number): WebSocket {
    const { ctx, buffer } = this.#options;
    const { 0: client, 1: socket } = new WebSocketPair();
    buffer.acknowledge(after, this.neededAfter);
    ctx.acceptWebSocket(socket);
    // Answered by the platform, without waking the object.
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(KEEP_ALIVE.ping, KEEP_ALIVE.pong));
    this.#states.save(socket, {
      jobNumber,
      reader,
      form,
      sentUpTo: buffer.acknowledgedUpTo,
      outstanding: nothingOutstanding(),
      hasAcknowledged: after > 0,
      checkedMs,
    });
    this.#send(socket);
    return client;
  }

  /** Sends every socket what it has not been sent; those first whose access needs no check. */
  async deliver(): Promise<void> {
    const { buffer, now } = this.#options;
    const unchecked: WebSocket[] = [];
    for (const socket of this.#open) {
      const { sentUpTo, checkedMs } = this.#states.of(socket);
      if (sentUpTo >= buffer.lastSeq) continue;
      if (now() - checkedMs <= CHECK_HOLDS_MS) this.#send(socket);
      else unchecked.push(socket);
    }
    await Promise.all(unchecked.map((socket) => this.#check(socket)));
  }

  /** Closes the sockets of those whose token is over, and checks those that were not for a while. */
  async recheck(): Promise<void> {
    const { now } = this.#options;
    this.#closeExpired();
    const due = this.#open.filter((socket) => now() - this.#states.of(socket).checkedMs >= RECHECK_MS);
    await Promise.all(due.map((socket) => this.#check(socket)));
  }

  /**
   * What a client says. An acknowledgement is for the job as a whole. Anything else ends a socket in envelope form, whose client
   * is wrong about something; from a bare one it is passed over, since clients of the reference send whatever keeps a connection.
   * Says whether anything has changed by it.
   */
  receive(socket: WebSocket, message: string | ArrayBuffer): boolean {
    const state = this.#states.of(socket);
    const length = typeof message === "string" ? message.length : message.byteLength;
    const seq = length > MAX_CLIENT_MESSAGE_LENGTH ? undefined : acknowledgedBy(message);
    if (state.reader.expiresAtMs <= this.#options.now()) this.#close(socket, CLOSE.tokenExpired);
    else if (seq !== undefined) this.#acknowledge(socket, state, seq);
    else if (length > MAX_CLIENT_MESSAGE_LENGTH) this.#close(socket, CLOSE.tooLarge);
    else if (state.form === "envelope") this.#close(socket, CLOSE.unknown);
    else return false;
    return true;
  }

  closeAll(close: Close): void {
    for (const socket of this.#open) this.#close(socket, close);
  }

  get #open(): WebSocket[] {
    return this.#options.ctx.getWebSockets().filter(isOpen);
  }

  /**
   * The client has the Close at once. Plain workerd, though, lets go of the connection itself only when the object goes to sleep,
   * some ten seconds later: a client that waits for that reports its end no sooner.
   */
  #close(socket: WebSocket, { code, reason }: Close): void {
    socket.close(code, reason);
  }

  #closeExpired(): void {
    for (const socket of this.#open) {
      if (this.#states.of(socket).reader.expiresAtMs <= this.#options.now()) this.#close(socket, CLOSE.tokenExpired);
    }
  }

  #check(socket: WebSocket): Promise<void> {
    let check = this.#checks.get(socket);
    if (check === undefined) {
      check = this.#checkAndSend(socket).finally(() => this.#checks.delete(socket));
      this.#checks.set(socket, check);
    }
    return check;
  }

  async #checkAndSend(socket: WebSocket): Promise<void> {
    const state = this.#states.of(socket);
    let access: Access;
    try {
      access = await this.#lookUp(state.reader);
    } catch (error) {
      // The socket stays, and what it is to be sent stays stored: it is asked again with the next message, or by the alarm.
      log.warn("a reader's access could not be checked", { error: describeError(error) });
      return;
    }
    if (!isOpen(socket)) return;
    if (access.isAllowed) {
      state.checkedMs = access.askedMs;
      this.#states.save(socket, state);
      this.#send(socket);
    } else this.#close(socket, CLOSE.notAllowed);
  }

  #lookUp(reader: Reader): Promise<Access> {
    const key = JSON.stringify([reader.kind, reader.name, reader.version]);
    let lookUp = this.#lookUps.get(key);
    if (lookUp === undefined) {
      // From before the look-up: what it finds may have changed by the time it is back.
      const askedMs = this.#options.now();
      lookUp = this.#options
        .stillAllowed(reader)
        .then((isAllowed) => ({ isAllowed, askedMs }))
        .finally(() => this.#lookUps.delete(key));
      this.#lookUps.set(key, lookUp);
    }
    return lookUp;
  }

  /** Without a single wait, so that nothing comes in between. */
  #send(socket: WebSocket): void {
    const { buffer } = this.#options;
    const state = this.#states.of(socket);
    try {
      const close = this.#sendAll(socket, state);
      this.#states.save(socket, state);
      buffer.markSent(state.sentUpTo);
      if (close !== undefined) this.#close(socket, close);
    } catch (error) {
      // One that fails must not keep the others from theirs.
      log.warn("a socket could not be sent to", { error: describeError(error) });
      this.#close(socket, CLOSE.broken);
    }
  }

  /** Why the socket is to be closed, if it is. */
  #sendAll(socket: WebSocket, state: SocketState): Close | undefined {
    const { buffer, limits, now } = this.#options;
    const { jobNumber, form, reader, outstanding } = state;
    if (reader.expiresAtMs <= now()) return CLOSE.tokenExpired;
    const gap = buffer.gapAfter(state.sentUpTo);
    if (gap !== undefined) {
      const text = gapToWire(form, jobNumber, gap, now());
      if (text !== undefined) socket.send(text);
      state.sentUpTo = gap.toSeq;
    }
    for (let page = buffer.page(state.sentUpTo); page.length > 0; page = buffer.page(state.sentUpTo)) {
      for (const message of page) {
        const text = toWire(form, jobNumber, message);
        if (text !== undefined) {
          if (outstandingBytes(outstanding) + message.bytes > limits.unacknowledgedBytes) return CLOSE.slow;
          socket.send(text);
          noteSent(outstanding, message.seq, message.bytes, limits.unacknowledgedBytes);
        }
        state.sentUpTo = message.seq;
      }
    }
    return undefined;
  }

  #acknowledge(socket: WebSocket, state: SocketState, seq: number): void {
    const { buffer } = this.#options;
    noteAcknowledged(state.outstanding, seq);
    state.hasAcknowledged ||= seq > 0;
    // It may have got there through another socket.
    state.sentUpTo = Math.max(state.sentUpTo, Math.min(seq, buffer.sentUpTo));
    this.#states.save(socket, state);
    buffer.acknowledge(seq, this.neededAfter);
  }
}

/** Does not depend on when it is asked for: nobody can put a check off by waking the object. */
function nextIdleCheckMs(checkedMs: number, nowMs: number): number {
  const overdueMs = nowMs - (checkedMs + RECHECK_MS);
  return overdueMs < 0 ? checkedMs + RECHECK_MS : nowMs + RETRY_IDLE_MS - (overdueMs % RETRY_IDLE_MS);
}

const isOpen = ({ readyState }: WebSocket): boolean => readyState === WebSocket.OPEN;

function acknowledgedBy(message: string | ArrayBuffer): number | undefined {
  if (typeof message !== "string") return undefined;
  try {
    return Acknowledgement.parse(JSON.parse(message)).ack;
  } catch {
    return undefined;
  }
}
