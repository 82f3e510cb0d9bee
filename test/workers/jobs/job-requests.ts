import { expect } from "vitest";
import { bearer, request, send } from "../support.ts";
import type { Envelope } from "./job-support.ts";

/** Jobs as clients use them: over HTTP and WebSockets. */

/** Connects a client to a job's stream, and keeps the messages that it receives. */
export async function connect(path: string, headers: Record<string, string>) {
  const response = await request(path, { headers: { Upgrade: "websocket", ...headers } });
  const socket = response.webSocket;
  const texts: string[] = [];
  let closed: { code: number; reason: string } | undefined;
  socket?.accept();
  socket?.addEventListener("message", ({ data }) => void texts.push(String(data)));
  socket?.addEventListener("close", ({ code, reason }) => {
    closed = { code, reason };
  });
  return {
    response,
    texts,
    messages: () => texts.map((text) => JSON.parse(text) as Envelope),
    until: async (isReached: (messages: Envelope[]) => boolean) => {
      await expect
        .poll(() => isReached(texts.map((text) => JSON.parse(text) as Envelope)), { timeout: 20_000, interval: 20 })
        .toBe(true);
      return texts.map((text) => JSON.parse(text) as Envelope);
    },
    closed: () => closed,
    ack: (seq: number) => socket?.send(JSON.stringify({ ack: seq })),
    end: () => socket?.close(1000),
  };
}

export const stream = (jobNumber: string, token: string, query = "") =>
  connect(`/api/v1/ws/${jobNumber}${query}`, bearer(token));
export const postBytes = (
  kind: string,
  jobNumber: string,
  body: string | Uint8Array,
  token: string,
  headers: Record<string, string> = {},
) =>
  request(`/api/v1/callback/${kind}?job_number=${jobNumber}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...bearer(token), ...headers },
    body,
  });
export const post = (kind: string, job: string, data: unknown, token: string, headers: Record<string, string> = {}) =>
  postBytes(kind, job, JSON.stringify(data), token, headers);
export const status = async (jobNumber: string, token: string) =>
  (await (await send("GET", `/api/v1/jobs/${jobNumber}`, undefined, token)).json()) as Record<string, unknown>;
export const isFinal = (messages: Envelope[]) => messages.some(({ final }) => final);
export const rowsOf = (messages: Envelope[], type: string) =>
  messages.filter((message) => message.type === type).flatMap(({ data }) => data as Record<string, unknown>[]);
