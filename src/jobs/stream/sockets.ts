import type { IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import { describeError, log } from "../../lib/log.ts";
import { Acknowledgement, KEEP_ALIVE } from "../../schemas/stream.ts";
import { CLOSE, type Close } from "../../schemas/stream-protocol.ts";
import type { FlowState } from "../producers/flow-control.ts";
import { AccessChecks } from "./access-checks.ts";
import { encodeGap, encodeMessage } from "./envelope.ts";
import type { StreamHandshake } from "./handshake.ts";
import type { MessageBuffer } from "./message-buffer.ts";
import { type SocketAttachment, SocketAttachments } from "./socket-attachment.ts";
import { noneUnacknowledged, recordAcknowledged, recordSent, unacknowledgedBytes } from "./unacknowledged.ts";

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

const MAX_CLIENT_MESSAGE_LENGTH = 1_024;

export interface SocketsOptions {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "setWebSocketAutoResponse">;
  buffer: MessageBuffer;
  isCredentialCurrent: IsCredentialCurrent;
  limits: SocketLimits;
  now: () => number;
}

export class JobSockets {
  readonly #options: SocketsOptions;
  readonly #states = new SocketAttachments();
  readonly #checks: AccessChecks;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#checks = new AccessChecks(options);
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

  get flow(): FlowState["sockets"] {
    return this.#open.map((socket) => {
      const { outstanding, hasAcknowledged } = this.#states.of(socket);
      return { unacknowledgedBytes: unacknowledgedBytes(outstanding), hasAcknowledged };
    });
  }

  /** When something is to be done even though nobody comes; never where no socket is open. */
  get nextDueMs(): number {
    const due = this.#open.flatMap((socket) => {
      const { reader, checkedMs, sentUpTo } = this.#states.of(socket);
      const isBehind = sentUpTo < this.#options.buffer.lastSeq;
      return [reader.expiresAtMs, this.#checks.nextDueMs(checkedMs, isBehind)];
    });
    return Math.min(...due);
  }

  /** Accepts a socket whose reader was just found to be allowed, and sends it what is there. Returns the client's end. */
  accept({ jobNumber, reader, form, after = 0 }: StreamHandshake, checkedMs: number): WebSocket {
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
      outstanding: noneUnacknowledged(),
      hasAcknowledged: after > 0,
      checkedMs,
    });
    this.#send(socket);
    return client;
  }

  /** Sends every socket what it has not been sent; those first whose access needs no check. */
  async deliver(): Promise<void> {
    const { buffer } = this.#options;
    const unchecked: WebSocket[] = [];
    for (const socket of this.#open) {
      const { sentUpTo, checkedMs } = this.#states.of(socket);
      if (sentUpTo >= buffer.lastSeq) continue;
      if (this.#checks.holds(checkedMs)) this.#send(socket);
      else unchecked.push(socket);
    }
    await Promise.all(unchecked.map((socket) => this.#check(socket)));
  }

  /** Closes the sockets of those whose token is over, and checks those that were not for a while. */
  async recheck(): Promise<void> {
    this.#closeExpired();
    const due = this.#open.filter((socket) => this.#checks.isOld(this.#states.of(socket).checkedMs));
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

  /** Whoever may not read any more goes; whoever may is sent what there is. */
  #check(socket: WebSocket): Promise<void> {
    const state = this.#states.of(socket);
    return this.#checks.check(socket, state.reader, ({ isAllowed, askedMs }) => {
      if (!isOpen(socket)) return;
      if (!isAllowed) return this.#close(socket, CLOSE.notAllowed);
      state.checkedMs = askedMs;
      this.#states.save(socket, state);
      this.#send(socket);
    });
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
  #sendAll(socket: WebSocket, state: SocketAttachment): Close | undefined {
    const { buffer, limits, now } = this.#options;
    const { jobNumber, form, reader, outstanding } = state;
    if (reader.expiresAtMs <= now()) return CLOSE.tokenExpired;
    const gap = buffer.gapAfter(state.sentUpTo);
    if (gap !== undefined) {
      const text = encodeGap(form, jobNumber, gap, now());
      if (text !== undefined) socket.send(text);
      state.sentUpTo = gap.toSeq;
    }
    for (let page = buffer.page(state.sentUpTo); page.length > 0; page = buffer.page(state.sentUpTo)) {
      for (const message of page) {
        const text = encodeMessage(form, jobNumber, message);
        if (text !== undefined) {
          if (unacknowledgedBytes(outstanding) + message.bytes > limits.unacknowledgedBytes) return CLOSE.slow;
          socket.send(text);
          recordSent(outstanding, message.seq, message.bytes, limits.unacknowledgedBytes);
        }
        state.sentUpTo = message.seq;
      }
    }
    return undefined;
  }

  #acknowledge(socket: WebSocket, state: SocketAttachment, seq: number): void {
    const { buffer } = this.#options;
    recordAcknowledged(state.outstanding, seq);
    state.hasAcknowledged ||= seq > 0;
    // It may have got there through another socket.
    state.sentUpTo = Math.max(state.sentUpTo, Math.min(seq, buffer.sentUpTo));
    this.#states.save(socket, state);
    buffer.acknowledge(seq, this.neededAfter);
  }
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
