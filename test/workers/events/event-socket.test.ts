import { describe, expect, it } from "vitest";
import { EventSocket } from "../../../src/events/event-socket.ts";
import { NotAuthenticated, Unavailable } from "../../../src/lib/errors.ts";
import type { EventPage, NetworkEvent } from "../../../src/schemas/events.ts";
import { EVENT_LIMITS } from "../../../src/schemas/events.ts";
import { adminToken, newAgent, newApp, request, send, signedUp, uniqueName } from "../support.ts";
import { eventLog, openEvents } from "./event-support.ts";

const append = (apId: string, numbers: readonly number[]) =>
  eventLog.append(
    numbers.map((i) => ({ atMs: Date.now(), type: "agent.online", severity: "info", apId, data: { i } })),
  );
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const numbersOf = (events: readonly NetworkEvent[]) =>
  events.flatMap(({ data }) => (typeof data.i === "number" ? [data.i] : []));

/** Creates a viewer of one new agent. */
async function watched() {
  const site = uniqueName();
  const { apId } = await newAgent({}, { site });
  const grants = [{ role: "viewer" as const, selector: `site=${site}` }];
  return { apId, ...(await signedUp(grants)) };
}

describe("the WebSocket of the event log", () => {
  it("sends each event that the reader sees as one message, in order", async () => {
    const { apId, token } = await watched();
    const after = await eventLog.newestId();
    await append(apId, range(0, 250));
    const socket = await openEvents(token, `after=${after}`);
    await socket.until((events) => events.length >= 250);
    await append((await newAgent()).apId, [1_000]);
    await append(apId, range(250, 260));
    await socket.until((events) => events.length >= 260);
    expect(numbersOf(socket.events())).toEqual(range(0, 260));
    const ids = socket.events().map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    socket.end();
  });

  it("resumes with the cursor without loss or duplicates, also while events arrive", async () => {
    const { apId, token } = await watched();
    let cursor = await eventLog.newestId();
    const received: number[] = [];
    const writing = (async () => {
      for (let i = 0; i < 40; i++) {
        await append(apId, range(i * 5, i * 5 + 5));
        await scheduler.wait(50);
      }
    })();
    for (let i = 0; i < 6 || received.length < 200; i++) {
      const socket = await openEvents(token, `after=${cursor}`);
      await socket.until((events) => events.length >= Math.min(30, 200 - received.length));
      const events = socket.events();
      received.push(...numbersOf(events));
      cursor = events.at(-1)?.id ?? cursor;
      socket.end();
    }
    await writing;
    expect(received).toEqual(range(0, 200));
  });

  it("sends only new events without a cursor, and applies the filters", async () => {
    const { apId, token } = await watched();
    await append(apId, [1]);
    const socket = await openEvents(token, "types=agent.online&severity=info");
    await send("PUT", `/api/v1/agents/${apId}`, { configuration: { a: 1 } }, await adminToken());
    await append(apId, [2]);
    await socket.until((events) => events.length > 0);
    expect(numbersOf(socket.events())).toEqual([2]);
    socket.end();
  });

  it("closes with 4403 within five seconds after a grant was revoked, without further events", async () => {
    const { apId, username, token } = await watched();
    const socket = await openEvents(token);
    await append(apId, [1]);
    await socket.until((events) => events.length === 1);
    const path = `/api/v1/users/${encodeURIComponent(username)}/grants`;
    expect((await send("PUT", path, { grants: [] }, await adminToken())).status).toBe(200);
    await socket.isClosed(4403);
    await append(apId, [2]);
    await scheduler.wait(1_500);
    expect(numbersOf(socket.events())).toEqual([1]);
  });

  it("closes with 4403 if the account is deleted", async () => {
    const { appName, token } = await newApp();
    const socket = await openEvents(token);
    await send("DELETE", `/api/v1/third_party_apps/${appName}`, undefined, await adminToken());
    await socket.isClosed(4403);
  });

  it("answers a ping, and closes after any other message", async () => {
    const { token } = await signedUp();
    const socket = await openEvents(token);
    socket.send("ping");
    await expect.poll(() => socket.texts).toEqual(["pong"]);
    socket.send({ ack: 0 });
    socket.send({ ack: 1, more: true });
    await socket.isClosed(1008);
    const other = await openEvents(token);
    other.send("x".repeat(2_000));
    await other.isClosed(1009);
  });

  it("accepts the token as a protocol, and selects its own protocol", async () => {
    const { token } = await signedUp();
    const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": `event-stream.v1, bearer.${token}` };
    const response = await request("/api/v1/events/ws", { headers });
    expect([response.status, response.headers.get("Sec-WebSocket-Protocol")]).toEqual([101, "event-stream.v1"]);
    response.webSocket?.accept();
    response.webSocket?.close(1000);
    expect((await send("GET", "/api/v1/events/ws", undefined, token)).status).toBe(426);
  });

  it("is one of at most 16 per account", async () => {
    const { token } = await signedUp();
    const sockets = await Promise.all(range(0, 16).map(() => openEvents(token)));
    const headers = { Upgrade: "websocket", Authorization: `Bearer ${token}` };
    expect((await request("/api/v1/events/ws", { headers })).status).toBe(429);
    for (const socket of sockets) socket.end();
    await expect
      .poll(async () => {
        const { status, webSocket } = await request("/api/v1/events/ws", { headers });
        webSocket?.accept();
        webSocket?.close(1000);
        return status;
      })
      .toBe(101);
  });
});

/** Opens a socket whose reader and log the test controls. */
function controlledSocket(over: { authorize?: () => Promise<never>; expiresAtMs?: number } = {}) {
  const clock = { ms: 0 };
  const viewer = { seesAll: true, id: "", scope: {} };
  const log = { newestId: 5_000, isUp: true };
  const read = async (_: unknown, after: number, limit: number): Promise<EventPage> => {
    if (!log.isUp) throw new Unavailable("accounts database", undefined);
    const ids = range(after + 1, Math.min(after + limit, log.newestId) + 1);
    const events = ids.map((id) => ({ id }) as NetworkEvent);
    return { events, next_after: after + ids.length, has_more: true };
  };
  let isReleased = false;
  const socket = new EventSocket({
    start: 0,
    newestId: log.newestId,
    expiresAtMs: 1_000_000,
    authorize: async () => viewer,
    read,
    newest: {
      waitAfter: async () => {
        await scheduler.wait(5);
        return undefined;
      },
    },
    slot: {
      touch: () => {},
      release: () => {
        isReleased = true;
      },
    },
    now: () => clock.ms,
    ...over,
  });
  const { webSocket } = socket.open(null);
  const ids: number[] = [];
  let closed: number | undefined;
  webSocket?.accept();
  webSocket?.addEventListener("message", ({ data }) => void ids.push((JSON.parse(String(data)) as { id: number }).id));
  webSocket?.addEventListener("close", ({ code }) => {
    closed = code;
  });
  const ack = (ack: number) => webSocket?.send(JSON.stringify({ ack }));
  return {
    clock,
    log,
    ids,
    ack,
    end: () => webSocket?.close(1000),
    closed: () => closed,
    isReleased: () => isReleased,
  };
}

describe("a slow reader of events", () => {
  const MAX = EVENT_LIMITS.unacknowledged;

  it("gets at most 1,000 unacknowledged events, and more after it acknowledges some", async () => {
    const socket = controlledSocket();
    await expect.poll(() => socket.ids.length).toBe(MAX);
    await scheduler.wait(150);
    expect(socket.ids.length).toBe(MAX);
    socket.ack(500);
    await expect.poll(() => socket.ids.length).toBe(MAX + 500);
    expect(socket.ids).toEqual(range(1, MAX + 501));
    socket.end();
    await expect.poll(socket.isReleased).toBe(true);
  });

  it("is disconnected with 1013 after a minute without an acknowledgement", async () => {
    const socket = controlledSocket();
    await expect.poll(() => socket.ids.length).toBe(MAX);
    await scheduler.wait(100);
    socket.clock.ms += EVENT_LIMITS.stalledMs - 1;
    socket.ack(1);
    await expect.poll(() => socket.ids.length).toBe(MAX + 1);
    await scheduler.wait(100);
    socket.clock.ms += EVENT_LIMITS.stalledMs - 1;
    await scheduler.wait(150);
    expect(socket.closed()).toBeUndefined();
    socket.clock.ms += 1;
    await expect.poll(socket.closed).toBe(1013);
    expect(socket.isReleased()).toBe(true);
  });
});

describe("the socket of a reader", () => {
  it("closes with 4401 when the token expires", async () => {
    const socket = controlledSocket();
    socket.clock.ms = 1_000_000;
    await expect.poll(socket.closed).toBe(4401);
  });

  it("closes with 4403 when the token is invalid", async () => {
    const authorize = () => Promise.reject(new NotAuthenticated("Could not validate credentials"));
    await expect.poll(controlledSocket({ authorize }).closed).toBe(4403);
  });

  it("stays open and gets nothing during an outage of the database, and then continues", async () => {
    const socket = controlledSocket();
    socket.log.isUp = false;
    await scheduler.wait(200);
    expect([socket.ids.length % 100, socket.closed()]).toEqual([0, undefined]);
    const received = socket.ids.length;
    socket.log.isUp = true;
    await expect.poll(() => socket.ids.length, { timeout: 5_000 }).toBe(MAX_UNACKNOWLEDGED);
    expect(received).toBeLessThan(MAX_UNACKNOWLEDGED);
    expect(socket.ids).toEqual(range(1, MAX_UNACKNOWLEDGED + 1));
    socket.end();
  });
});

const MAX_UNACKNOWLEDGED = EVENT_LIMITS.unacknowledged;
