import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { ApiClient } from "./client.ts";
import { acknowledge, callbackPath, closeSockets, type Envelope, openSocket, streamPath } from "./job-socket.ts";
import { until } from "./product.ts";
import type { Limiter } from "./stats.ts";
import { createWorkload, type Verdict, type Workload } from "./workload.ts";

/** Checks job streams: every reader receives every acknowledged callback, exactly once, in order and without holes. */

const RETRY_MS = 100;
/** Detects a connection that died without a close. */
const HEARTBEAT_MS = 3_000;
const READ_WITHIN_MS = 60_000;

export interface StreamOptions {
  client: ApiClient;
  token: string;
  readers: number;
  /** Acknowledges every so many messages. Without it, nothing is acknowledged. */
  acknowledgeEvery?: number;
  /** Pings the service, which costs too much for thousands of sockets. */
  hasHeartbeat?: boolean;
  /** Limits how many sockets are opened at the same time. */
  opening?: Limiter;
  onMessage?: (envelope: Envelope) => void;
}

export interface StreamVerdict extends Verdict {
  violations: {
    /** A message after one that it should precede, by its number or its sender; or another one under the same number. */
    inversions: number;
    /** Numbers missing on a connection, or between it and the one before. */
    holes: number;
    /** Readers that do not have everything in the end. */
    incomplete: number;
    renumbered: number;
  };
  connections: number;
}

export class StreamReader {
  /** What arrived, by sequence number less one. */
  readonly keys: (string | undefined)[] = [];
  readonly closeCodes: number[] = [];
  socket: WebSocket | undefined;
  connections = 0;
  inversions = 0;
  holes = 0;
}

/** One job with its callbacks and its readers. A callback is a key, or an object with one. */
export class StreamWorkload {
  readonly jobNumber = crypto.randomUUID();
  /** The key of each acknowledged callback, by sequence number. */
  readonly acknowledged = new Map<number, string>();
  readonly readers: StreamReader[];
  readonly #options: StreamOptions;
  #conflicts = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.readers = Array.from({ length: options.readers }, () => new StreamReader());
  }

  /** Whether every reader has every acknowledged callback. */
  get isRead(): boolean {
    return this.#readUpTo >= Math.max(0, ...this.acknowledged.keys());
  }

  /** The last number that every reader has. An acknowledgement counts for all readers of a job, so they agree on this. */
  get #readUpTo(): number {
    return Math.min(...this.readers.map(({ keys }) => keys.length));
  }

  /** Posts a callback until it is acknowledged, unless the signal comes first. */
  async post(key: string, { pauseMs = RETRY_MS, data, signal }: PostOptions = {}): Promise<void> {
    const { client, token } = this.#options;
    const request = { token, headers: { "Idempotency-Key": key }, body: [data ?? key] };
    for (; signal?.aborted !== true; await sleep(pauseMs)) {
      const response = await client.attempt(callbackPath(this.jobNumber), request);
      if (response?.status !== 200) continue;
      const { seq } = response.body as { seq: number };
      if ((this.acknowledged.get(seq) ?? key) !== key) this.#conflicts++;
      this.acknowledged.set(seq, key);
      return;
    }
  }

  /** Starts senders that post one callback after the other. The last one is posted until its outcome is known. */
  send(senders: number, pauseMs: number, signal: AbortSignal): Promise<void>[] {
    return Array.from({ length: senders }, async (_, sender) => {
      for (let n = 1; !signal.aborted; n++, await sleep(pauseMs)) await this.post(`${sender} ${n}`, { pauseMs });
    });
  }

  /** Starts the readers, which reconnect when their connection is lost. */
  read(signal: AbortSignal): Promise<void>[] {
    const opening: Limiter = this.#options.opening ?? ((work) => work());
    return this.readers.map(async (reader) => {
      for (; !signal.aborted; await sleep(RETRY_MS)) {
        // A place of the limiter is occupied until the socket is open.
        const connection = await opening(async () => {
          return signal.aborted ? undefined : await this.#connect(reader, signal).catch(() => undefined);
        });
        await connection?.closed;
      }
    });
  }

  async #connect(reader: StreamReader, signal: AbortSignal): Promise<{ closed: Promise<void> }> {
    const { client, token, hasHeartbeat } = this.#options;
    // Resumes at the slowest reader of the job, since resuming acknowledges.
    const after = this.#readUpTo;
    let lastSeq = after;
    const onText = (text: string, socket: WebSocket): void => {
      if (socket.readyState !== WebSocket.OPEN) return;
      const envelope = parseEnvelope(text);
      // The rest of a garbled stream is not reliable either.
      if (envelope === undefined) return void socket.terminate();
      if (envelope.type === "gap" || envelope.seq > lastSeq + 1) reader.holes++;
      if (envelope.seq <= lastSeq) reader.inversions++;
      lastSeq = envelope.seq;
      if (envelope.type === "agent_data") this.#receive(reader, envelope, socket);
    };
    const socket = await openSocket({ url: client.url, path: streamPath(this.jobNumber, after), token, onText });
    reader.socket = socket;
    reader.connections++;
    const closed = Promise.withResolvers<void>();
    const end = () => closeSockets([socket]);
    socket.once("close", (code) => {
      signal.removeEventListener("abort", end);
      reader.socket = undefined;
      reader.closeCodes.push(code);
      closed.resolve();
    });
    if (hasHeartbeat) startHeartbeat(socket);
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    return { closed: closed.promise };
  }

  #receive(reader: StreamReader, envelope: Envelope, socket: WebSocket): void {
    const { acknowledgeEvery, onMessage } = this.#options;
    const [first] = envelope.data as (string | { key: string })[];
    const key = typeof first === "object" ? first.key : String(first);
    const { seq } = envelope;
    if ((reader.keys[seq - 1] ?? key) !== key) reader.inversions++;
    reader.keys[seq - 1] = key;
    onMessage?.(envelope);
    if (acknowledgeEvery !== undefined && seq % acknowledgeEvery === 0) acknowledge(socket, this.#readUpTo);
  }

  /** Callbacks that were acknowledged under several numbers, and numbers that were given to several callbacks. */
  get renumbered(): number {
    return this.#conflicts + this.acknowledged.size - new Set(this.acknowledged.values()).size;
  }
}

interface PostOptions {
  pauseMs?: number;
  /** The callback itself, if it is more than its key. */
  data?: { key: string; filler?: string };
  signal?: AbortSignal;
}

/** Returns how many callbacks arrived after a later one of the same sender (`<sender> <n>`). */
function countOutOfTurn(keys: readonly string[]): number {
  const last = new Map<string, number>();
  let count = 0;
  for (const key of keys) {
    const [sender = "", n] = key.split(" ");
    if (Number(n) <= (last.get(sender) ?? 0)) count++;
    last.set(sender, Number(n));
  }
  return count;
}

function parseEnvelope(text: string): Envelope | undefined {
  try {
    return JSON.parse(text) as Envelope;
  } catch {
    return undefined;
  }
}

/** Closes a connection on which the service does not respond any more. */
function startHeartbeat(socket: WebSocket): void {
  let isAlive = true;
  socket.on("pong", () => {
    isAlive = true;
  });
  const timer = setInterval(() => {
    if (!isAlive) socket.terminate();
    isAlive = false;
    if (socket.readyState === WebSocket.OPEN) socket.ping();
  }, HEARTBEAT_MS);
  socket.once("close", () => clearInterval(timer));
}

export interface StreamsOptions {
  token: string;
  /** How many readers each job has. */
  readersOfJobs: readonly number[];
  sendersPerJob: number;
  pauseMs: number;
}

/** Returns the verdict on all readers of several jobs. */
export function sumVerdicts(streams: readonly StreamWorkload[]): Omit<StreamVerdict, "settledMs"> {
  const violations = { inversions: 0, holes: 0, incomplete: 0, renumbered: 0 };
  const verdict = { lost: 0, duplicates: 0, violations, connections: 0 };
  for (const { acknowledged, readers, renumbered } of streams) {
    violations.renumbered += renumbered;
    for (const { keys, inversions, holes, connections } of readers) {
      const missing = [...acknowledged].filter(([seq, key]) => keys[seq - 1] !== key).length;
      verdict.lost += missing;
      violations.incomplete += missing > 0 || keys.includes(undefined) ? 1 : 0;
      const received = keys.filter((key) => key !== undefined);
      verdict.duplicates += received.length - new Set(received).size;
      violations.inversions += inversions + countOutOfTurn(received);
      violations.holes += holes;
      verdict.connections += connections;
    }
  }
  return verdict;
}

/** Posts callbacks to several jobs and reads them. */
export function startStreams(client: ApiClient, options: StreamsOptions): Workload<StreamVerdict> {
  const { token, readersOfJobs, sendersPerJob, pauseMs } = options;
  const streams = readersOfJobs.map(
    (readers) => new StreamWorkload({ client, token, readers, acknowledgeEvery: 25, hasHeartbeat: true }),
  );
  const [stopSending, stopReading] = [new AbortController(), new AbortController()];
  const readers = streams.flatMap((stream) => stream.read(stopReading.signal));
  const senders = streams.flatMap((stream) => stream.send(sendersPerJob, pauseMs, stopSending.signal));
  return createWorkload("callbacks", stopSending, senders, {
    acknowledged: () => streams.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0),
    async settle() {
      const startedMs = performance.now();
      await until(() => streams.every(({ isRead }) => isRead), READ_WITHIN_MS).catch(() => {});
      const settledMs = performance.now() - startedMs;
      stopReading.abort();
      await Promise.all(readers);
      return { ...sumVerdicts(streams), settledMs };
    },
  });
}
