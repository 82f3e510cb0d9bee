import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Quantiles } from "./stats.ts";

/** Work that runs continuously and records what the service acknowledged. */
export interface Workload<V extends Verdict = Verdict> {
  readonly name: string;
  /** Operations acknowledged so far. */
  readonly acknowledged: number;
  /** Starts nothing more. Resolves when the outcome of everything that was started is known. */
  stop(): Promise<void>;
  /** After `stop`: waits for late results, and compares what was acknowledged with what is stored. */
  settle(): Promise<V>;
}

export interface Verdict {
  /** Acknowledged, but missing or different. */
  lost: number;
  /** Present more than once. */
  duplicates: number;
  /** Other violations, by name. */
  violations: Record<string, number>;
  /** How long after the stop everything was there. */
  settledMs: number;
}

/** Returns a workload that ends by an abort of `stop`. */
export const createWorkload = <V extends Verdict>(
  name: string,
  stop: AbortController,
  running: readonly Promise<unknown>[],
  { acknowledged, settle }: { acknowledged(): number; settle(): Promise<V> },
): Workload<V> => ({
  name,
  get acknowledged() {
    return acknowledged();
  },
  async stop() {
    stop.abort();
    await Promise.all(running);
  },
  settle,
});

/** Returns a text for each violation, such as "callbacks: 3 lost". */
export const problemsOf = (name: string, { lost, duplicates, violations }: Omit<Verdict, "settledMs">): string[] =>
  Object.entries({ lost, duplicates, ...violations }).flatMap(([what, n]) => (n > 0 ? [`${name}: ${n} ${what}`] : []));

/**
 * An HTTP load generator: requests over kept connections, in a closed loop or at a fixed rate, written on bare sockets so that the client
 * is not the bottleneck.
 *
 * autocannon 8 was measured against this generator on the same bare Worker: 32 connections that each post reports with their own token, on
 * two busy arm64 cores. autocannon used 166 to 186 µs of CPU per request, this generator 98 to 124 µs, and both share their cores with
 * the service under test. autocannon rounds latencies to whole milliseconds, more than a fast path takes.
 */

export interface LoadOptions {
  /** A login in the URL is sent with every request. */
  url: string;
  connections: number;
  seconds: number;
  /** The rate of all connections together. A request that a slow predecessor delays counts from the time at which it was due. */
  pacePerSecond?: number;
  /** Returns the next request of a connection. */
  next(connection: number, count: number): LoadRequest;
}

export interface LoadRequest {
  method: "GET" | "POST";
  path: string;
  token?: string | undefined;
  body?: string | URLSearchParams;
}

export interface LoadResult {
  count: number;
  perSecond: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  /** How often each status other than 200 occurred. */
  failures: Record<string, number>;
}

export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { url, connections, seconds, pacePerSecond, next } = options;
  const { hostname, port, username, password } = new URL(url);
  const login = username === "" ? undefined : `Basic ${btoa(`${username}:${password}`)}`;
  const tookMs = new Quantiles();
  const failures: Record<string, number> = {};
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, async (_, connection) => {
      const http = new Connection(connect(Number(port), hostname));
      try {
        for (let count = 0; performance.now() < endMs; count++) {
          const sentMs =
            pacePerSecond === undefined
              ? performance.now()
              : await untilDue(startedMs + ((count * connections + connection) * 1000) / pacePerSecond);
          const status = await http.send(next(connection, count), `${hostname}:${port}`, login);
          tookMs.add(performance.now() - sentMs);
          if (status !== 200) failures[status] = (failures[status] ?? 0) + 1;
        }
      } finally {
        http.end();
      }
    }),
  );
  const elapsedS = (performance.now() - startedMs) / 1000;
  const [p50Ms, p90Ms, p99Ms] = [tookMs.at(0.5), tookMs.at(0.9), tookMs.at(0.99)];
  return { count: tookMs.count, perSecond: tookMs.count / elapsedS, p50Ms, p90Ms, p99Ms, failures };
}

/** Waits until a request is due. Returns the time from which it counts. */
async function untilDue(dueMs: number): Promise<number> {
  const earlyMs = dueMs - performance.now();
  if (earlyMs <= 0) return dueMs;
  await sleep(earlyMs);
  return performance.now();
}

const HEAD_END = "\r\n\r\n";

/** Sends one request at a time. Understands bodies with a length and chunked bodies, no more. */
class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #response: PromiseWithResolvers<number> | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("error", (error) => this.#response?.reject(error));
    socket.on("close", () => this.#response?.reject(new Error("The service closed the connection")));
  }

  async send({ method, path, token, body }: LoadRequest, host: string, login?: string): Promise<number> {
    this.#response = Promise.withResolvers();
    const head = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${host}`,
      ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
      ...(login === undefined ? [] : [`Authorization: ${login}`]),
      ...(body === undefined
        ? []
        : [`Content-Type: ${typeOf(body)}`, `Content-Length: ${Buffer.byteLength(`${body}`)}`]),
    ].join("\r\n");
    this.#socket.write(`${head}${HEAD_END}${body ?? ""}`);
    return await this.#response.promise;
  }

  end(): void {
    this.#response = undefined;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
    const isComplete =
      length === undefined
        ? this.#received.subarray(-5).toString("latin1") === `0${HEAD_END}`
        : this.#received.length >= headEnd + HEAD_END.length + Number(length);
    if (!isComplete) return;
    this.#received = Buffer.alloc(0);
    this.#response?.resolve(Number(head.slice(9, 12)));
  }
}

const typeOf = (body: string | URLSearchParams): string =>
  typeof body === "string" ? "application/json" : "application/x-www-form-urlencoded";
