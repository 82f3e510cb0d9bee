import { env } from "cloudflare:test";
import { expect } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createEventLog, toNetworkEvent } from "../../../src/events/event-log.ts";
import { EVENT_MESSAGES } from "../../../src/schemas/event-data.ts";
import type { EventPage, NetworkEvent } from "../../../src/schemas/events.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { bearer, request, send, settings } from "../support.ts";

/** The event log as its readers see it. Other tests write to the same log, so tests look for events by what they are about. */

export const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
export const eventLog = createEventLog(database);

export async function listEvents(token: string, query = ""): Promise<EventPage> {
  const response = await send("GET", `/api/v1/events?${query}`, undefined, token);
  expect(response.status).toBe(200);
  return (await response.json()) as EventPage;
}

/** Runs work, and returns all events that were written in the meantime and contain a text. */
export async function eventsOf(text: string | (() => string), work: () => Promise<unknown>): Promise<NetworkEvent[]> {
  const after = await eventLog.newestId();
  await work();
  const rows = await eventLog.readAfter({ after, limit: 5_000 });
  const wanted = typeof text === "string" ? text : text();
  const found = rows.map(toNetworkEvent).filter((event) => JSON.stringify(event).includes(wanted));
  // All events are as documented.
  for (const event of found) expect(EVENT_MESSAGES[event.type].parse(event)).toEqual(event);
  return found;
}

/** The parts of events that tests usually compare. */
export const brief = (events: readonly NetworkEvent[]) =>
  events.map(({ type, actor, data }) => ({ type, actor, data }));

export const ADMIN = `admin:${settings.ADMIN_USERNAME}`;

/** A socket that reads the event log. */
export async function openEvents(token: string, query = "") {
  const headers = { Upgrade: "websocket", ...bearer(token) };
  const { status, webSocket } = await request(`/api/v1/events/ws?${query}`, { headers });
  expect(status).toBe(101);
  if (webSocket === null) throw new Error("No socket");
  const texts: string[] = [];
  let closed: { code: number; reason: string } | undefined;
  webSocket.accept();
  webSocket.addEventListener("message", ({ data }) => void texts.push(String(data)));
  webSocket.addEventListener("close", ({ code, reason }) => {
    closed = { code, reason };
  });
  const events = () => texts.filter((text) => text !== "pong").map((text) => JSON.parse(text) as NetworkEvent);
  return {
    texts,
    events,
    closed: () => closed,
    send: (message: unknown) => webSocket.send(typeof message === "string" ? message : JSON.stringify(message)),
    end: () => webSocket.close(1000),
    until: async (isReached: (events: NetworkEvent[]) => boolean, timeout = 10_000) => {
      await expect.poll(() => isReached(events()), { timeout, interval: 20 }).toBe(true);
    },
    isClosed: async (code: number, timeout = 5_000) => {
      await expect.poll(() => closed?.code, { timeout, interval: 20 }).toBe(code);
    },
  };
}
