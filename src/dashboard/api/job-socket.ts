import type * as z from "zod";
import type { STREAM_MESSAGES } from "../../schemas/stream.ts";
import { renewed, session } from "../app/session.ts";

type Messages = typeof STREAM_MESSAGES;
type MessageOf<T extends keyof Messages> = Omit<z.output<Messages[T]>, "type"> & { type: T };

/** A message of a job's stream; its type says what its data are. */
export type JobMessage = { [T in keyof Messages]: MessageOf<T> }[keyof Messages];

export type SocketState =
  | { state: "connecting" }
  | { state: "open" }
  /** Lost; tried again after a while. */
  | { state: "lost"; reason: string }
  /** So much has come that the rest comes only to somebody who takes it. */
  | { state: "held" }
  /** There is nothing more to come. */
  | { state: "over"; reason: string };

export interface JobListener {
  /** In order, each once; with the text that it came as. */
  message(message: JobMessage, text: string): void;
  state(state: SocketState): void;
}

/** Of the service's close codes, those that trying again does not help against. */
const TOKEN_ENDED = 4401;
const FINAL_CODES: ReadonlySet<number> = new Set([1008, 1009, 4403, 4410]);
const PING_MS = 30_000;
const LONGEST_PAUSE_MS = 15_000;
/** Acknowledgements are gathered: one for each message would double the traffic. Much at once is acknowledged at once. */
const ACKNOWLEDGE_MS = 250;
const ACKNOWLEDGE_LENGTH = 256 * 1024;
/**
 * The service goes as far as 16 MiB without acknowledgements; a reader that got there would be closed again and again. In characters,
 * of up to three bytes.
 */
const HELD_LENGTH = 5 * 1024 * 1024;

/**
 * Listens to a job, and goes on where it was after a lost connection. To look takes nothing away: until told to take, it does not
 * acknowledge, so that whoever reads the job next gets all of it, too.
 */
export class JobSocket {
  readonly #jobNumber: string;
  readonly #listener: JobListener;
  readonly #ending = new AbortController();
  #isTaking = false;
  #isHeld = false;
  #lastSeq = 0;
  #attempt = 0;
  /** The present connection, and what is to be stopped with it. */
  #socket: WebSocket | undefined;
  #pinging: ReturnType<typeof setInterval> | undefined;
  #acknowledging: ReturnType<typeof setTimeout> | undefined;
  #connectingAgain: ReturnType<typeof setTimeout> | undefined;
  #unacknowledgedLength = 0;

  constructor(jobNumber: string, listener: JobListener) {
    this.#jobNumber = jobNumber;
    this.#listener = listener;
    this.#connect();
  }

  /** From now on acknowledges: what has been received is not sent again, to anybody. */
  take(): void {
    this.#isTaking = true;
    if (this.#isHeld) {
      this.#isHeld = false;
      this.#connect();
    } else this.#acknowledge();
  }

  end(): void {
    this.#ending.abort();
    this.#disconnect();
  }

  #connect(): void {
    // It may have been ended between a new token and now.
    if (this.#ending.signal.aborted) return;
    const token = session.get()?.token ?? "";
    const socket = new WebSocket(this.#address, ["job-stream.v1", `bearer.${token}`]);
    this.#socket = socket;
    this.#unacknowledgedLength = 0;
    this.#pinging = setInterval(() => socket.readyState === WebSocket.OPEN && socket.send("ping"), PING_MS);
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
      if (FINAL_CODES.has(code)) return this.#listener.state({ state: "over", reason });
      this.#listener.state({ state: "lost", reason });
      this.#connectAgain(code === TOKEN_ENDED ? token : undefined);
    };
  }

  get #address(): URL {
    const address = new URL(`/api/v1/ws/${encodeURIComponent(this.#jobNumber)}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    // This acknowledges, too.
    if (this.#isTaking && this.#lastSeq > 0) address.searchParams.set("after", String(this.#lastSeq));
    return address;
  }

  #connectAgain(endedToken: string | undefined): void {
    if (endedToken !== undefined) {
      void renewed(endedToken, this.#ending.signal).then(
        () => this.#connect(),
        () => {},
      );
      return;
    }
    const pauseMs = Math.min(LONGEST_PAUSE_MS, 500 * 2 ** this.#attempt++) * (0.5 + Math.random() / 2);
    this.#connectingAgain = setTimeout(() => this.#connect(), pauseMs);
  }

  /** Nothing more is heard of the present connection. */
  #disconnect(): void {
    clearInterval(this.#pinging);
    clearTimeout(this.#acknowledging);
    clearTimeout(this.#connectingAgain);
    this.#acknowledging = undefined;
    const socket = this.#socket;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(1000);
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as JobMessage;
    this.#unacknowledgedLength += text.length;
    // At least once is what the service promises.
    if (message.seq > this.#lastSeq) {
      this.#lastSeq = message.seq;
      this.#listener.message(message, text);
    }
    // Whoever was told of the message may have ended it.
    if (this.#ending.signal.aborted) return;
    if (this.#isTaking) {
      if (this.#unacknowledgedLength >= ACKNOWLEDGE_LENGTH) this.#acknowledge();
      else this.#acknowledging ??= setTimeout(() => this.#acknowledge(), ACKNOWLEDGE_MS);
    } else if (this.#unacknowledgedLength >= HELD_LENGTH) {
      this.#isHeld = true;
      this.#disconnect();
      this.#listener.state({ state: "held" });
    }
  }

  #acknowledge(): void {
    clearTimeout(this.#acknowledging);
    this.#acknowledging = undefined;
    this.#unacknowledgedLength = 0;
    if (this.#socket?.readyState === WebSocket.OPEN && this.#lastSeq > 0) {
      this.#socket.send(JSON.stringify({ ack: this.#lastSeq }));
    }
  }
}
