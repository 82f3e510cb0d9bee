import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Quantiles } from "../stats.ts";
import type { Details } from "./report.ts";

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
  pacePerSecond?: number | undefined;
  /** Returns the next request of a connection. */
  next(connection: number, count: number): LoadRequest;
}

/** A POST with a body, a GET without one. */
export interface LoadRequest {
  path: string;
  token?: string | undefined;
  body?: string | URLSearchParams;
}

export interface LoadResult {
  count: number;
  perSecond: number;
  p90Ms: number;
  p99Ms: number;
  /** Whether every response had the status 200 or 204. */
  isFlawless: boolean;
  /** Latencies, and how often each other status occurred. */
  details: Details;
}

export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { url, connections, seconds, pacePerSecond, next } = options;
  const { hostname, port, host, username, password } = new URL(url);
  const headers = [`Host: ${host}`];
  if (username !== "") headers.push(`Authorization: Basic ${btoa(`${username}:${password}`)}`);
  const tookMs = new Quantiles();
  const failures: Record<string, number> = {};
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1000;
  const send = async (connection: number): Promise<void> => {
    using http = new Connection(connect(Number(port), hostname), headers);
    for (let count = 0; performance.now() < endMs; count++) {
      const dueMs = pacePerSecond && startedMs + ((count * connections + connection) * 1000) / pacePerSecond;
      const earlyMs = (dueMs ?? 0) - performance.now();
      if (earlyMs > 0) await sleep(earlyMs);
      const sentMs = dueMs === undefined || earlyMs > 0 ? performance.now() : dueMs;
      const status = await http.send(next(connection, count));
      tookMs.add(performance.now() - sentMs);
      if (status !== 200 && status !== NO_CONTENT) failures[status] = (failures[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, connection) => send(connection)));
  const elapsedS = (performance.now() - startedMs) / 1000;
  const isFlawless = Object.keys(failures).length === 0;
  const details = { ...tookMs.details(), ...(!isFlawless && { failures: JSON.stringify(failures) }) };
  const { count } = tookMs;
  return { count, perSecond: count / elapsedS, p90Ms: tookMs.at(0.9), p99Ms: tookMs.at(0.99), isFlawless, details };
}

const HEAD_END = "\r\n\r\n";
const NO_CONTENT = 204;

/** Sends one request at a time. Understands bodies with a length and chunked bodies, no more. */
class Connection {
  readonly #socket: Socket;
  readonly #headers: readonly string[];
  #received: Buffer = Buffer.alloc(0);
  #response: PromiseWithResolvers<number> | undefined;

  constructor(socket: Socket, headers: readonly string[]) {
    this.#socket = socket;
    this.#headers = headers;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#receive(chunk));
    socket.on("error", (error) => this.#response?.reject(error));
    socket.on("close", () => this.#response?.reject(new Error("The service closed the connection")));
  }

  async send({ path, token, body }: LoadRequest): Promise<number> {
    this.#response = Promise.withResolvers();
    const head = [`${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`, ...this.#headers];
    if (token !== undefined) head.push(`Authorization: Bearer ${token}`);
    if (body !== undefined) {
      const type = typeof body === "string" ? "application/json" : "application/x-www-form-urlencoded";
      head.push(`Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(`${body}`)}`);
    }
    this.#socket.write(`${head.join("\r\n")}${HEAD_END}${body ?? ""}`);
    return await this.#response.promise;
  }

  [Symbol.dispose](): void {
    this.#response = undefined;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
    const status = Number(head.slice(9, 12));
    const isComplete =
      status === NO_CONTENT ||
      (length === undefined
        ? this.#received.subarray(-5).toString("latin1") === `0${HEAD_END}`
        : this.#received.length >= headEnd + HEAD_END.length + Number(length));
    if (!isComplete) return;
    this.#received = Buffer.alloc(0);
    this.#response?.resolve(status);
  }
}
