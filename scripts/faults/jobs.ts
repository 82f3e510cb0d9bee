import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../trial/accounts.ts";
import { acknowledge, callbackPath, closeSockets, openSocket, streamPath } from "../trial/job-socket.ts";
import { type Product, until } from "../trial/product.ts";
import { killUnderLoad, TIMEOUT_MS } from "./kills.ts";

/** Callbacks and sockets while workerd dies: what was acknowledged must reach every reader, once, in order and without a hole. */

export interface JobsOutcome {
  /** Callbacks that were answered with 200. */
  acknowledged: number;
  /** Acknowledged, and some reader never got it under the number that the answer named. */
  lost: number;
  /** The same callback under two numbers. */
  doubled: number;
  /** A message after one that it should have come before, by its number or by its sender's; or another under the same number. */
  inversions: number;
  /** Numbers left out on a connection, or between it and the one before. */
  holes: number;
  /** Readers that do not have everything in the end. */
  incomplete: number;
  connections: number;
  /** How long each kill took to be over: workerd is back, and callbacks get through again. */
  recoveredMs: number[];
}

/** How many read each job. An acknowledgement is for the job as a whole, so those who read together agree on how far they all are. */
const READERS_OF_JOBS = [1, 1, 3, 4];
const SENDERS_PER_JOB = 4;
const PAUSE_MS = 20;
const RECONNECT_MS = 100;
const ACKNOWLEDGE_EVERY = 25;

export async function killUnderJobs(product: Product, kills: number, signal?: AbortSignal): Promise<JobsOutcome> {
  const { token } = await makeUser(product.dataDir, `faults-${Date.now()}@example.com`);
  const jobs = READERS_OF_JOBS.map((readers) => new TrialJob(product, token, readers));
  const stopSending = new AbortController();
  const stopReading = new AbortController();
  const readers = jobs.flatMap((job) => job.read(stopReading.signal));
  const senders = jobs.flatMap((job) => job.send(stopSending.signal));
  const acknowledged = () => jobs.reduce((sum, job) => sum + job.acknowledged.size, 0);
  let recoveredMs: number[];
  try {
    recoveredMs = await killUnderLoad(product, { part: "worker", kills, progress: acknowledged, signal });
  } finally {
    stopSending.abort();
    await Promise.all(senders);
    await until(() => jobs.every((job) => job.isRead), TIMEOUT_MS).catch(() => {});
    stopReading.abort();
    await Promise.all(readers);
  }
  const faults = jobs.map((job) => job.faults());
  const sum = (name: keyof ReturnType<TrialJob["faults"]>) => faults.reduce((all, of) => all + of[name], 0);
  return {
    acknowledged: acknowledged(),
    lost: sum("lost"),
    doubled: sum("doubled"),
    inversions: sum("inversions"),
    holes: sum("holes"),
    incomplete: sum("incomplete"),
    connections: sum("connections"),
    recoveredMs,
  };
}

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
class TrialJob {
  /** By number: which callback was answered with it. */
  readonly acknowledged = new Map<number, string>();
  readonly #jobNumber = crypto.randomUUID();
  readonly #product: Product;
  readonly #token: string;
  readonly #readers: Reader[];

  constructor(product: Product, token: string, readers: number) {
    this.#product = product;
    this.#token = token;
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
    return Array.from({ length: SENDERS_PER_JOB }, async (_, sender) => {
      for (let n = 1; !signal.aborted; n++) {
        const callback = `${sender} ${n}`;
        // The last one too is sent until it is known what became of it.
        for (let seq: number | undefined; seq === undefined; await sleep(PAUSE_MS)) {
          seq = await this.#post(callback);
          if (seq !== undefined) this.acknowledged.set(seq, callback);
        }
      }
    });
  }

  async #post(callback: string): Promise<number | undefined> {
    try {
      const response = await fetch(`${this.#product.url}${callbackPath(this.#jobNumber)}`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${this.#token}`,
          "Content-Type": "application/json",
          "Idempotency-Key": callback,
        },
        body: JSON.stringify([callback]),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const answer = (await response.json()) as { seq: number };
      return response.status === 200 ? answer.seq : undefined;
    } catch {
      return undefined;
    }
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
      url: this.#product.url,
      path: streamPath(this.#jobNumber, after),
      token: this.#token,
      onText: (text, socket) => {
        const { seq, type, data } = JSON.parse(text) as Envelope;
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
    signal.addEventListener("abort", () => closeSockets([socket]), { once: true });
    if (signal.aborted) closeSockets([socket]);
    await closed.promise;
  }

  faults() {
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
