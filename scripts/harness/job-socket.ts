import { EventEmitter, on } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { UserError } from "../../src/programs/shared/cli.ts";
import type { ApiClient } from "./client.ts";

/** The reader's end of a job stream. */

export interface SocketOptions {
  /** Of the service. */
  url: string;
  path: string;
  token?: string | undefined;
  onText?: (text: string, socket: WebSocket) => void;
}

const HANDSHAKE_MS = 30_000;

/** Opens a socket. Rejects if the service refuses it. Delivers messages that arrive together with the opening. */
export async function openSocket({ url, path, token, onText }: SocketOptions): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}${path}`, {
    headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    perMessageDeflate: false,
    maxPayload: 64 * 1024 * 1024,
    handshakeTimeout: HANDSHAKE_MS,
  });
  const opened = Promise.withResolvers<void>();
  socket.on("open", () => opened.resolve());
  socket.on("error", opened.reject);
  socket.on("close", (code) => opened.reject(new Error(`Closed with ${code}`)));
  if (onText !== undefined) socket.on("message", (data) => onText(String(data), socket));
  await opened.promise;
  return socket;
}

export interface Envelope<Data = unknown> {
  seq: number;
  type: string;
  final: boolean;
  data: Data;
}

export interface Queued {
  job_number: string;
}

export const streamPath = (jobNumber: string, after?: number): string =>
  `/api/v1/ws/${jobNumber}${after === undefined ? "" : `?after=${after}`}`;

export const callbackPath = (jobNumber: string): string => `/api/v1/callback/agent_data?job_number=${jobNumber}`;

export function historyPath(range: { apId: string; fromMs: number; toMs: number }): string {
  const [start_time, end_time] = [new Date(range.fromMs).toISOString(), new Date(range.toMs).toISOString()];
  return `/api/v1/agent_data/request_agent_data?${new URLSearchParams({ agent_id: range.apId, start_time, end_time })}`;
}

/** Returns the sequence number of a message without parsing all of it. */
export const seqOf = (text: string): number => Number(/^\{"job_number":"[^"]*","seq":(\d+),/.exec(text)?.[1]);

export const acknowledge = (socket: WebSocket, seq: number): void => socket.send(JSON.stringify({ ack: seq }));

export function closeSockets(sockets: readonly WebSocket[]): void {
  // Without the closing handshake, which plain workerd delays.
  for (const socket of sockets) socket.terminate();
}

const NEXT_WITHIN_MS = 60_000;

/** Reads a stream message by message, at the pace of the caller. */
export async function openReader(client: ApiClient, token: string, jobNumber: string, after?: number) {
  const arrivals = new EventEmitter();
  const texts = on(arrivals, "text", { close: ["close"], signal: client.signal });
  const onText = (text: string) => arrivals.emit("text", text);
  const socket = await openSocket({ url: client.url, path: streamPath(jobNumber, after), token, onText });
  let code = 0;
  socket.on("close", (closeCode) => {
    code = closeCode;
    arrivals.emit("close");
  });
  return {
    /** Rejects if no message arrives in time, or if the socket closes. */
    async next<Data = unknown[]>(): Promise<Envelope<Data> & { bytes: number }> {
      const late = sleep(NEXT_WITHIN_MS, undefined, { ref: false });
      const arrival = await Promise.race([texts.next(), late]);
      if (!arrival) throw new UserError(`No message of job ${jobNumber} arrived within ${NEXT_WITHIN_MS / 1_000} s`);
      if (arrival.done) throw new UserError(`The socket of job ${jobNumber} was closed with ${code}`);
      const [text] = arrival.value as [string];
      return { ...(JSON.parse(text) as Envelope<Data>), bytes: text.length };
    },
    acknowledge: (seq: number) => acknowledge(socket, seq),
    [Symbol.dispose]: () => socket.terminate(),
  };
}
