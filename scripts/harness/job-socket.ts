import { WebSocket } from "ws";

/** A reader's end of a job's stream. */

export interface SocketOptions {
  /** Of the service. */
  url: string;
  path: string;
  token?: string;
  onText?: (text: string, socket: WebSocket) => void;
}

/** One who is not answered at all must not wait for ever. */
const HANDSHAKE_MS = 30_000;

/** Opens a socket; fails where that is refused. What comes with the opening is not missed. */
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

export const streamPath = (jobNumber: string, after?: number): string =>
  `/api/v1/ws/${jobNumber}${after === undefined ? "" : `?after=${after}`}`;

export const callbackPath = (jobNumber: string): string => `/api/v1/callback/agent_data?job_number=${jobNumber}`;

/** A message's number, without reading all of it. */
export const seqOf = (text: string): number => Number(/^\{"job_number":"[^"]*","seq":(\d+),/.exec(text)?.[1]);

export const acknowledge = (socket: WebSocket, seq: number): void => socket.send(JSON.stringify({ ack: seq }));

export function closeSockets(sockets: readonly WebSocket[]): void {
  // Not by the handshake: plain workerd takes its time over the end of a connection.
  for (const socket of sockets) socket.terminate();
}

export interface Queued {
  job_number: string;
}

/** Asks for an agent's data; the number of the job. */
export async function requestHistory(
  url: string,
  token: string,
  range: { apId: string; fromMs: number; toMs: number },
): Promise<string> {
  const query = new URLSearchParams({
    agent_id: range.apId,
    start_time: new Date(range.fromMs).toISOString(),
    end_time: new Date(range.toMs).toISOString(),
  });
  const response = await fetch(`${url}/api/v1/agent_data/request_agent_data?${query}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
  });
  if (!response.ok) throw new Error(`The request for data was answered with ${response.status}`);
  return ((await response.json()) as Queued).job_number;
}
