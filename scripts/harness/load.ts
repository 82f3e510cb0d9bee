import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Quantiles } from "./quantiles.ts";

/**
 * HTTP requests over kept connections, one after the other or at a pace of their own, written on bare sockets: the client must not
 * be what is measured.
 */

export interface LoadOptions {
  /** With a user and a password in it, they go along with every request. */
  url: string;
  connections: number;
  seconds: number;
  /** Of all connections together. A request that is late because the one before it took so long counts from when it was due. */
  pacePerSecond?: number;
  /** The next request of a connection. */
  next(connection: number, count: number): LoadRequest;
}

export interface LoadRequest {
  method: "GET" | "POST";
  path: string;
  token?: string;
  body?: string | URLSearchParams;
}

export interface LoadResult {
  count: number;
  perSecond: number;
  p50Ms: number;
  p90Ms: number;
  p99Ms: number;
  /** How often each status came that is not 200. */
  failures: Record<string, number>;
}

export async function load({ url, connections, seconds, pacePerSecond, next }: LoadOptions): Promise<LoadResult> {
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
  return {
    count: tookMs.count,
    perSecond: tookMs.count / elapsedS,
    p50Ms: tookMs.at(0.5),
    p90Ms: tookMs.at(0.9),
    p99Ms: tookMs.at(0.99),
    failures,
  };
}

/** Waits; from when on the request counts. */
async function untilDue(dueMs: number): Promise<number> {
  const earlyMs = dueMs - performance.now();
  if (earlyMs <= 0) return dueMs;
  await sleep(earlyMs);
  return performance.now();
}

const HEAD_END = "\r\n\r\n";

/** One request at a time. Understands bodies with a length and in chunks, and looks no further. */
class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #answered: PromiseWithResolvers<number> | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.#take(chunk));
    socket.on("error", (error) => this.#answered?.reject(error));
    socket.on("close", () => this.#answered?.reject(new Error("The service closed the connection")));
  }

  async send({ method, path, token, body }: LoadRequest, host: string, login?: string): Promise<number> {
    this.#answered = Promise.withResolvers();
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
    return await this.#answered.promise;
  }

  end(): void {
    this.#answered = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
    const hasFullScope =
      length === undefined
        ? this.#received.subarray(-5).toString("latin1") === `0${HEAD_END}`
        : this.#received.length >= headEnd + HEAD_END.length + Number(length);
    if (!hasFullScope) return;
    this.#received = Buffer.alloc(0);
    this.#answered?.resolve(Number(head.slice(9, 12)));
  }
}

const typeOf = (body: string | URLSearchParams): string =>
  typeof body === "string" ? "application/json" : "application/x-www-form-urlencoded";
