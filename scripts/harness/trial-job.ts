import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { acknowledge, callbackPath, closeSockets, openSocket, streamPath } from "./job-socket.ts";
import type { Target } from "./target.ts";

export interface TrialJobOptions {
  /** An acknowledgement is for the job as a whole, so those who read together agree on how far they all are. */
  readers: number;
  sendersPerJob: number;
  pauseMs: number;
}

const RECONNECT_MS = 100;
const ACKNOWLEDGE_EVERY = 25;
/** A connection that has gone without a word is noticed by then. */
const HEARTBEAT_MS = 3_000;

interface Reader {
  /** What came, by number less one. */
  callbacks: (string | undefined)[];
  connections: number;
  inversions: number;
  holes: number;
}

interface Envelope {
  seq: number;
  type: string;
  data: unknown;
}

/** One job with its senders and its readers. */
export class TrialJob {
  /** By number: which callback was answered with it. */
  readonly acknowledged = new Map<number, string>();
  readonly #jobNumber = crypto.randomUUID();
  readonly #target: Pick<Target, "url" | "ask">;
  readonly #token: string;
  readonly #sending: Omit<TrialJobOptions, "readers">;
  readonly #readers: Reader[];

  constructor(target: Pick<Target, "url" | "ask">, token: string, { readers, ...sending }: TrialJobOptions) {
    this.#target = target;
    this.#token = token;
    this.#sending = sending;
    this.#readers = Array.from({ length: readers }, () => ({ callbacks: [], connections: 0, inversions: 0, holes: 0 }));
  }

  get isRead(): boolean {
    return this.#readUpTo >= Math.max(0, ...this.acknowledged.keys());
  }

  /** How far every reader has come. */
  get #readUpTo(): number {
    return Math.min(...this.#readers.map(({ callbacks }) => callbacks.length));
  }

  /** Each sends one callback after the other; each again and again until it is acknowledged, as a careful subscriber does. */
  send(signal: AbortSignal): Promise<void>[] {
    const { sendersPerJob, pauseMs } = this.#sending;
    return Array.from({ length: sendersPerJob }, async (_, sender) => {
      for (let n = 1; !signal.aborted; n++) {
        const callback = `${sender} ${n}`;
        // The last one too is sent until it is known what became of it.
        for (let seq: number | undefined; seq === undefined; await sleep(pauseMs)) {
          seq = await this.#post(callback);
          if (seq !== undefined) this.acknowledged.set(seq, callback);
        }
      }
    });
  }

  async #post(callback: string): Promise<number | undefined> {
    const answer = await this.#target.ask(callbackPath(this.#jobNumber), {
      token: this.#token,
      headers: { "Idempotency-Key": callback },
      body: [callback],
    });
    return answer?.status === 200 ? (answer.body as { seq: number }).seq : undefined;
  }

  /** Each reads, acknowledges now and then, and connects again where the connection is gone. */
  read(signal: AbortSignal): Promise<void>[] {
    return this.#readers.map(async (reader) => {
      for (; !signal.aborted; await sleep(RECONNECT_MS)) await this.#readOnce(reader, signal).catch(() => {});
    });
  }

  async #readOnce(reader: Reader, signal: AbortSignal): Promise<void> {
    // Whoever reads together with others goes back to where the last of them is, and passes over what it has.
    const after = this.#readUpTo;
    let lastSeq = after;
    const socket = await openSocket({
      url: this.#target.url,
      path: streamPath(this.#jobNumber, after),
      token: this.#token,
      onText: (text, socket) => {
        if (socket.readyState !== WebSocket.OPEN) return;
        const envelope = readEnvelope(text);
        // Garbled on its way: what comes behind it is not to be relied on.
        if (envelope === undefined) return socket.terminate();
        const { seq, type, data } = envelope;
        if (type === "gap" || seq > lastSeq + 1) reader.holes++;
        if (seq <= lastSeq) reader.inversions++;
        lastSeq = seq;
        if (type !== "agent_data") return;
        const callback = String((data as unknown[])[0]);
        if ((reader.callbacks[seq - 1] ?? callback) !== callback) reader.inversions++;
        reader.callbacks[seq - 1] = callback;
        if (seq % ACKNOWLEDGE_EVERY === 0) acknowledge(socket, this.#readUpTo);
      },
    });
    reader.connections++;
    const closed = Promise.withResolvers<void>();
    socket.once("close", () => closed.resolve());
    keepAlive(socket);
    signal.addEventListener("abort", () => closeSockets([socket]), { once: true });
    if (signal.aborted) closeSockets([socket]);
    await closed.promise;
  }

  compare() {
    const all = { lost: 0, doubled: 0, inversions: 0, holes: 0, incomplete: 0, connections: 0 };
    for (const { callbacks, inversions, holes, connections } of this.#readers) {
      const missing = [...this.acknowledged].filter(([seq, callback]) => callbacks[seq - 1] !== callback).length;
      all.lost += missing;
      all.incomplete += missing > 0 || callbacks.includes(undefined) ? 1 : 0;
      all.doubled += callbacks.length - new Set(callbacks).size;
      all.inversions += inversions + outOfTurn(callbacks);
      all.holes += holes;
      all.connections += connections;
    }
    return all;
  }
}

/** How many callbacks came before one that their sender had sent earlier. */
function outOfTurn(callbacks: Reader["callbacks"]): number {
  const last = new Map<string, number>();
  let count = 0;
  for (const callback of callbacks) {
    const [sender = "", n] = (callback ?? "").split(" ");
    if (Number(n) <= (last.get(sender) ?? 0)) count++;
    last.set(sender, Number(n));
  }
  return count;
}

function readEnvelope(text: string): Envelope | undefined {
  try {
    return JSON.parse(text) as Envelope;
  } catch {
    return undefined;
  }
}

/** Ends a connection on which nothing is heard any more, as one does that nobody has closed. */
function keepAlive(socket: WebSocket): void {
  let isHeard = true;
  socket.on("pong", () => {
    isHeard = true;
  });
  const beating = setInterval(() => {
    if (!isHeard) socket.terminate();
    isHeard = false;
    if (socket.readyState === WebSocket.OPEN) socket.ping();
  }, HEARTBEAT_MS);
  socket.once("close", () => clearInterval(beating));
}
