import type * as z from "zod";
import type { STREAM_MESSAGES } from "../../schemas/stream.ts";
import { session, waitForNewToken } from "../app/session.ts";

type Messages = typeof STREAM_MESSAGES;
type MessageOf<T extends keyof Messages> = Omit<z.output<Messages[T]>, "type"> & { type: T };

/** A message of a job's stream. Its type determines the type of its data. */
export type JobMessage = { [T in keyof Messages]: MessageOf<T> }[keyof Messages];

export type SocketState =
  | { state: "connecting" }
  | { state: "open" }
  /** The connection was lost. The socket reconnects after a pause. */
  | { state: "lost"; reason: string }
  /** The socket stopped reading: the service sends more only to a reader that acknowledges. */
  | { state: "paused" }
  /** The service closed the stream for good. */
  | { state: "ended"; reason: string };

export interface JobListener {
  /** Receives every message once and in order, with its original text. */
  message(message: JobMessage, text: string): void;
  state(state: SocketState): void;
}

const TOKEN_EXPIRED = 4401;
/** Close codes after which reconnecting cannot succeed. */
const FINAL_CODES: ReadonlySet<number> = new Set([1008, 1009, 4403, 4410]);
const PING_INTERVAL_MS = 30_000;
const MAX_RECONNECT_DELAY_MS = 15_000;
/** Acknowledgements are batched: one for each message would double the traffic. A large batch is acknowledged immediately. */
const ACKNOWLEDGE_DELAY_MS = 250;
const ACKNOWLEDGE_LENGTH = 256 * 1024;
/**
 * The service closes the socket of a reader that has 16 MiB unacknowledged, and would do so after every reconnection. This limit is
 * in characters, of up to three bytes each.
 */
const PAUSE_LENGTH = 5 * 1024 * 1024;

/**
 * Reads a job's stream, and resumes after a lost connection. Until `acknowledge` is called it sends no acknowledgements, so that
 * other readers of the job still receive every message.
 */
export class JobSocket {
  readonly #jobNumber: string;
  readonly #listener: JobListener;
  readonly #ending = new AbortController();
  #isAcknowledging = false;
  #isPaused = false;
  #lastSeq = 0;
  #attempt = 0;
  #socket: WebSocket | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;
  #acknowledgeTimer: ReturnType<typeof setTimeout> | undefined;
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined;
  #unacknowledgedLength = 0;

  constructor(jobNumber: string, listener: JobListener) {
    this.#jobNumber = jobNumber;
    this.#listener = listener;
    this.#connect();
  }

  /** Acknowledges from now on: the service sends no received message again, to any reader. */
  acknowledge(): void {
    this.#isAcknowledging = true;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#connect();
    } else this.#sendAcknowledgement();
  }

  end(): void {
    this.#ending.abort();
    this.#disconnect();
  }

  #connect(): void {
    // `end` may have been called between the arrival of a new token and this call.
    if (this.#ending.signal.aborted) return;
    const token = session.value?.token ?? "";
    const socket = new WebSocket(this.#address, ["job-stream.v1", `bearer.${token}`]);
    this.#socket = socket;
    this.#unacknowledgedLength = 0;
    this.#pingTimer = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send("ping"), PING_INTERVAL_MS);
    this.#listener.state({ state: "connecting" });
    socket.onopen = () => {
      this.#attempt = 0;
      this.#listener.state({ state: "open" });
    };
    socket.onmessage = ({ data }) => {
      if (data !== "pong") this.#receive(String(data));
    };
    socket.onclose = ({ code, reason }) => {
      this.#disconnect();
      if (FINAL_CODES.has(code)) return this.#listener.state({ state: "ended", reason });
      this.#listener.state({ state: "lost", reason });
      this.#reconnect(code === TOKEN_EXPIRED ? token : undefined);
    };
  }

  get #address(): URL {
    const address = new URL(`/api/v1/ws/${encodeURIComponent(this.#jobNumber)}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    // The service treats this parameter as an acknowledgement.
    if (this.#isAcknowledging && this.#lastSeq > 0) address.searchParams.set("after", String(this.#lastSeq));
    return address;
  }

  #reconnect(expiredToken: string | undefined): void {
    if (expiredToken !== undefined) {
      void waitForNewToken(expiredToken, this.#ending.signal).then(
        () => this.#connect(),
        () => {},
      );
      return;
    }
    const delayMs = Math.min(MAX_RECONNECT_DELAY_MS, 500 * 2 ** this.#attempt++) * (0.5 + Math.random() / 2);
    this.#reconnectTimer = setTimeout(() => this.#connect(), delayMs);
  }

  #disconnect(): void {
    clearInterval(this.#pingTimer);
    clearTimeout(this.#acknowledgeTimer);
    clearTimeout(this.#reconnectTimer);
    this.#acknowledgeTimer = undefined;
    const socket = this.#socket;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(1000);
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as JobMessage;
    this.#unacknowledgedLength += text.length;
    // The service delivers at least once: drop duplicates.
    if (message.seq > this.#lastSeq) {
      this.#lastSeq = message.seq;
      this.#listener.message(message, text);
    }
    // The listener may have called `end`.
    if (this.#ending.signal.aborted) return;
    if (this.#isAcknowledging) {
      if (this.#unacknowledgedLength >= ACKNOWLEDGE_LENGTH) this.#sendAcknowledgement();
      else this.#acknowledgeTimer ??= setTimeout(() => this.#sendAcknowledgement(), ACKNOWLEDGE_DELAY_MS);
    } else if (this.#unacknowledgedLength >= PAUSE_LENGTH) {
      this.#isPaused = true;
      this.#disconnect();
      this.#listener.state({ state: "paused" });
    }
  }

  #sendAcknowledgement(): void {
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    this.#unacknowledgedLength = 0;
    if (this.#socket?.readyState === WebSocket.OPEN && this.#lastSeq > 0) {
      this.#socket.send(JSON.stringify({ ack: this.#lastSeq }));
    }
  }
}
