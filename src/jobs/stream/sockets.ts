import type { IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import { describeError, log } from "../../lib/log.ts";
import { Acknowledgement } from "../../schemas/job.ts";
import { CLOSE, type Close, KEEP_ALIVE } from "../../schemas/stream-protocol.ts";
import type { FlowState } from "../producers/flow-control.ts";
import { AccessChecks } from "./access-checks.ts";
import { encodeGap, encodeMessage } from "./envelope.ts";
import type { StreamHandshake } from "./handshake.ts";
import type { MessageBuffer } from "./message-buffer.ts";
import {
  nothingUnacknowledged,
  recordAcknowledged,
  recordSent,
  type SocketAttachment,
  SocketAttachments,
  unacknowledgedBytes,
} from "./socket-attachment.ts";

export interface SocketLimits {
  sockets: number;
  /** Per socket. The platform does not report how much a connection has buffered, so this limit uses unacknowledged bytes instead. */
  unacknowledgedBytes: number;
}

const MAX_CLIENT_MESSAGE_LENGTH = 1_024;
/** The time of the last check of a socket that must be checked again. */
const NEVER_MS = 0;

export interface SocketsOptions {
  ctx: Pick<DurableObjectState, "acceptWebSocket" | "getWebSockets" | "setWebSocketAutoResponse">;
  buffer: MessageBuffer;
  isCredentialCurrent: IsCredentialCurrent;
  limits: SocketLimits;
  now: () => number;
}

/**
 * A job's sockets. They stay open while the object sleeps, so the state of each is in its attachment. Sending never awaits, and always
 * continues after the last message that the socket was sent. So each socket gets every message once and in order, even if posts, checks
 * and connections overlap.
 */
export class JobSockets {
  readonly #options: SocketsOptions;
  readonly #attachments = new SocketAttachments();
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

  /** Returns how many sockets were sent all messages up to a number. */
  countSentUpTo(seq: number): number {
    return this.#open.filter((socket) => this.#attachments.of(socket).sentUpTo >= seq).length;
  }

  /** Number of the last message that every open socket was sent; infinity if no socket is open. */
  get neededAfter(): number {
    return Math.min(...this.#open.map((socket) => this.#attachments.of(socket).sentUpTo));
  }

  get flow(): FlowState["sockets"] {
    return this.#open.map((socket) => {
      const { outstanding, hasAcknowledged } = this.#attachments.of(socket);
      return { unacknowledgedBytes: unacknowledgedBytes(outstanding), hasAcknowledged };
    });
  }

  /** When to call `recheck` or `deliver` even if nothing else happens; infinity if no socket is open. */
  get nextDueMs(): number {
    const due = this.#open.flatMap((socket) => {
      const { reader, checkedMs, sentUpTo } = this.#attachments.of(socket);
      const isBehind = sentUpTo < this.#options.buffer.lastSeq;
      return [reader.expiresAtMs, this.#checks.nextDueMs(checkedMs, isBehind)];
    });
    return Math.min(...due);
  }

  /** Accepts a socket whose reader has access, and sends it the stored messages. Returns the client's end. */
  accept({ jobNumber, reader, form, after = 0 }: StreamHandshake, checkedMs: number): WebSocket {
    const { ctx, buffer } = this.#options;
    const { 0: client, 1: socket } = new WebSocketPair();
    buffer.acknowledge(after, this.neededAfter);
    ctx.acceptWebSocket(socket);
    // The platform responds to pings without waking the object.
    ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair(KEEP_ALIVE.ping, KEEP_ALIVE.pong));
    this.#attachments.save(socket, {
      jobNumber,
      reader,
      form,
      sentUpTo: buffer.acknowledgedUpTo,
      outstanding: nothingUnacknowledged(),
      hasAcknowledged: after > 0,
      checkedMs,
    });
    this.#send(socket);
    return client;
  }

  /** Sends each socket its missing messages, first to those whose access needs no check. */
  async deliver(): Promise<void> {
    const { buffer } = this.#options;
    const unchecked: WebSocket[] = [];
    for (const socket of this.#open) {
      const { sentUpTo, checkedMs } = this.#attachments.of(socket);
      if (sentUpTo >= buffer.lastSeq) continue;
      if (this.#checks.isFresh(checkedMs)) this.#send(socket);
      else unchecked.push(socket);
    }
    await Promise.all(unchecked.map((socket) => this.#check(socket)));
  }

  /** Closes sockets with an expired token, and checks the access of those with a stale check. */
  async recheck(): Promise<void> {
    this.#closeExpired();
    const due = this.#open.filter((socket) => this.#checks.isStale(this.#attachments.of(socket).checkedMs));
    await Promise.all(due.map((socket) => this.#check(socket)));
  }

  /** Checks the access of all sockets, because it may have changed. If a check fails, it is retried and nothing is sent before. */
  async recheckAll(): Promise<void> {
    await this.#checks.settle();
    for (const socket of this.#open) {
      const attachment = this.#attachments.of(socket);
      attachment.checkedMs = NEVER_MS;
      this.#attachments.save(socket, attachment);
    }
    await this.recheck();
  }

  /**
   * Handles a client's message, and returns whether anything changed. An acknowledgement counts for the job as a whole. Any other
   * message closes a socket with envelopes, because the client is faulty. A bare socket ignores it: clients of the reference
   * implementation send arbitrary text to keep the connection alive.
   */
  receive(socket: WebSocket, message: string | ArrayBuffer): boolean {
    const attachment = this.#attachments.of(socket);
    const length = typeof message === "string" ? message.length : message.byteLength;
    const seq = length > MAX_CLIENT_MESSAGE_LENGTH ? undefined : acknowledgedBy(message);
    if (attachment.reader.expiresAtMs <= this.#options.now()) this.#close(socket, CLOSE.tokenExpired);
    else if (seq !== undefined) this.#acknowledge(socket, attachment, seq);
    else if (length > MAX_CLIENT_MESSAGE_LENGTH) this.#close(socket, CLOSE.tooLarge);
    else if (attachment.form === "envelope") this.#close(socket, CLOSE.unknown);
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
   * The client gets the Close frame immediately. But plain workerd ends the TCP connection only when the object goes to sleep, about
   * ten seconds later. A client that waits for that reports the close late.
   */
  #close(socket: WebSocket, { code, reason }: Close): void {
    socket.close(code, reason);
  }

  #closeExpired(): void {
    for (const socket of this.#open) {
      if (this.#attachments.of(socket).reader.expiresAtMs <= this.#options.now())
        this.#close(socket, CLOSE.tokenExpired);
    }
  }

  /** Closes the socket if its reader has lost access. Otherwise sends its missing messages. */
  #check(socket: WebSocket): Promise<void> {
    const attachment = this.#attachments.of(socket);
    return this.#checks.check(socket, attachment.reader, ({ isAllowed, checkedMs }) => {
      if (!isOpen(socket)) return;
      if (!isAllowed) return this.#close(socket, CLOSE.notAllowed);
      attachment.checkedMs = checkedMs;
      this.#attachments.save(socket, attachment);
      this.#send(socket);
    });
  }

  /** Must not await, so that no other message is sent in between. */
  #send(socket: WebSocket): void {
    const { buffer } = this.#options;
    const attachment = this.#attachments.of(socket);
    try {
      const close = this.#sendAll(socket, attachment);
      this.#attachments.save(socket, attachment);
      buffer.markSent(attachment.sentUpTo);
      if (close !== undefined) this.#close(socket, close);
    } catch (error) {
      // A socket that fails must not prevent sending to the others.
      log.warn("socket send failed", { error: describeError(error) });
      this.#close(socket, CLOSE.broken);
    }
  }

  /** Returns the reason to close the socket, if there is one. */
  #sendAll(socket: WebSocket, attachment: SocketAttachment): Close | undefined {
    const { buffer, limits, now } = this.#options;
    const { jobNumber, form: format, reader, outstanding } = attachment;
    if (reader.expiresAtMs <= now()) return CLOSE.tokenExpired;
    const gap = buffer.gapAfter(attachment.sentUpTo);
    if (gap !== undefined) {
      const text = encodeGap(format, jobNumber, gap, now());
      if (text !== undefined) socket.send(text);
      attachment.sentUpTo = gap.toSeq;
    }
    for (let page = buffer.page(attachment.sentUpTo); page.length > 0; page = buffer.page(attachment.sentUpTo)) {
      for (const message of page) {
        const text = encodeMessage(format, jobNumber, message);
        if (text !== undefined) {
          if (unacknowledgedBytes(outstanding) + message.bytes > limits.unacknowledgedBytes) return CLOSE.slow;
          socket.send(text);
          recordSent(outstanding, message.seq, message.bytes, limits.unacknowledgedBytes);
        }
        attachment.sentUpTo = message.seq;
      }
    }
    return undefined;
  }

  #acknowledge(socket: WebSocket, attachment: SocketAttachment, seq: number): void {
    const { buffer } = this.#options;
    recordAcknowledged(attachment.outstanding, seq);
    attachment.hasAcknowledged ||= seq > 0;
    // The reader may have got these messages through another socket.
    attachment.sentUpTo = Math.max(attachment.sentUpTo, Math.min(seq, buffer.sentUpTo));
    this.#attachments.save(socket, attachment);
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
