import { sleep } from "../lib/deadline.ts";
import { NotAllowed, NotAuthenticated, Unavailable } from "../lib/errors.ts";
import { describeError, log } from "../lib/log.ts";
import { EVENT_LIMITS, EVENT_PROTOCOL, EventAcknowledgement, type EventPage } from "../schemas/events.ts";
import { CLOSE, type Close, echoedCloseCode, KEEP_ALIVE } from "../schemas/stream-protocol.ts";
import type { NewestEvent } from "./newest-event.ts";
import type { ReaderSlot } from "./reader-slots.ts";
import type { EventViewer } from "./visibility.ts";

export interface EventSocketOptions {
  /** The id of the last event that the reader has. */
  start: number;
  newestId: number;
  /** When the reader's token expires. */
  expiresAtMs: number;
  /** Returns the reader as it is now. Throws `NotAuthenticated` if its token is not valid any more. */
  authorize(): Promise<EventViewer>;
  read(viewer: EventViewer, after: number, limit: number, newestId: number): Promise<EventPage>;
  newest: NewestEvent;
  slot: ReaderSlot;
  now: () => number;
}

/** How often the reader's access is checked. `authorize` queries the database at most once in two seconds, for all readers. */
const CHECK_INTERVAL_MS = 1_000;
/** How often a socket with too many unacknowledged events looks for acknowledgements. */
const FULL_POLL_MS = 50;
const PAGE_EVENTS = 100;
const MAX_CLIENT_MESSAGE_LENGTH = 1_024;

/**
 * A WebSocket that sends the events of the log in order. It runs in the Worker and not in an object: all its state is the cursor, which the
 * client has as well, and there it shares the query for new events and the cache of identities with all other readers. When it ends for
 * any reason, the client connects again and resumes.
 */
export class EventSocket {
  readonly #options: EventSocketOptions;
  readonly #socket: WebSocket;
  readonly #client: WebSocket;
  #after: number;
  #newestId: number;
  /** Ids of events that were sent and are not acknowledged, in order. */
  #unacknowledged: number[] = [];
  /** Since when no more events may be sent. */
  #fullSinceMs: number | undefined;

  constructor(options: EventSocketOptions) {
    this.#options = options;
    this.#after = options.start;
    this.#newestId = options.newestId;
    const { 0: client, 1: socket } = new WebSocketPair();
    [this.#client, this.#socket] = [client, socket];
  }

  /** Starts to send events. Returns the response that upgrades the request. */
  open(offeredProtocols: string | null): Response {
    this.#socket.accept();
    this.#socket.addEventListener("message", ({ data }) => this.#receive(data));
    this.#socket.addEventListener("close", ({ code }) => this.#close({ code: echoedCloseCode(code), reason: "" }));
    this.#socket.addEventListener("error", () => this.#close(CLOSE.broken));
    void this.#run();
    const isOffered = (offeredProtocols ?? "").split(",").some((protocol) => protocol.trim() === EVENT_PROTOCOL);
    const headers = isOffered ? { "Sec-WebSocket-Protocol": EVENT_PROTOCOL } : {};
    return new Response(null, { status: 101, webSocket: this.#client, headers });
  }

  async #run(): Promise<void> {
    try {
      while (this.#isOpen) {
        this.#options.slot.touch();
        const close = await this.#step().catch(waitForDatabase);
        if (close !== undefined) this.#close(close);
      }
    } catch (error) {
      log.warn("event socket failed", { error: describeError(error) });
      this.#close(CLOSE.broken);
    } finally {
      this.#options.slot.release();
    }
  }

  /** Checks the reader's access, and sends it some events or waits for them. Returns the reason to close the socket, if there is one. */
  async #step(): Promise<Close | undefined> {
    const { now, expiresAtMs, newest } = this.#options;
    if (expiresAtMs <= now()) return CLOSE.tokenExpired;
    const viewer = await this.#viewer();
    if (viewer === undefined) return CLOSE.notAllowed;
    const room = EVENT_LIMITS.unacknowledged - this.#unacknowledged.length;
    this.#fullSinceMs = room > 0 ? undefined : (this.#fullSinceMs ?? now());
    if (now() - (this.#fullSinceMs ?? now()) >= EVENT_LIMITS.stalledMs) return CLOSE.slow;
    const isBehind = this.#newestId > this.#after;
    if (room <= 0) await sleep(FULL_POLL_MS);
    else if (isBehind) await this.#sendSome(viewer, room);
    else this.#newestId = (await newest.waitAfter(this.#after, now() + CHECK_INTERVAL_MS)) ?? this.#newestId;
    return undefined;
  }

  /** Returns undefined if the reader has no access any more. Throws if that is unknown because of an outage of the database. */
  async #viewer(): Promise<EventViewer | undefined> {
    try {
      return await this.#options.authorize();
    } catch (error) {
      if (error instanceof NotAuthenticated || error instanceof NotAllowed) return undefined;
      throw error;
    }
  }

  async #sendSome(viewer: EventViewer, room: number): Promise<void> {
    const limit = Math.min(room, PAGE_EVENTS);
    const { events, next_after } = await this.#options.read(viewer, this.#after, limit, this.#newestId);
    if (!this.#isOpen) return;
    for (const event of events) {
      this.#socket.send(JSON.stringify(event));
      this.#unacknowledged.push(event.id);
    }
    this.#after = next_after;
  }

  #receive(message: string | ArrayBuffer): void {
    const length = typeof message === "string" ? message.length : message.byteLength;
    const acknowledged = length > MAX_CLIENT_MESSAGE_LENGTH ? undefined : acknowledgedBy(message);
    if (message === KEEP_ALIVE.ping) this.#socket.send(KEEP_ALIVE.pong);
    else if (acknowledged !== undefined) {
      const left = this.#unacknowledged.findIndex((id) => id > acknowledged);
      this.#unacknowledged = left < 0 ? [] : this.#unacknowledged.slice(left);
    } else this.#close(length > MAX_CLIENT_MESSAGE_LENGTH ? CLOSE.tooLarge : CLOSE.unknown);
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  #close({ code, reason }: { code: number; reason: string }): void {
    try {
      this.#socket.close(code, reason);
    } catch {
      // Closed already.
    }
  }
}

/** Ignores an outage of the database: the next step continues where the failed one stopped. Rethrows any other error. */
async function waitForDatabase(error: unknown): Promise<undefined> {
  if (!(error instanceof Unavailable)) throw error;
  await sleep(CHECK_INTERVAL_MS);
}

function acknowledgedBy(message: string | ArrayBuffer): number | undefined {
  if (typeof message !== "string") return undefined;
  try {
    return EventAcknowledgement.parse(JSON.parse(message)).ack;
  } catch {
    return undefined;
  }
}
