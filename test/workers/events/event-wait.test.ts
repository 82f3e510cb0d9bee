import { describe, expect, it } from "vitest";
import { createNewestEvent } from "../../../src/events/newest-event.ts";
import { ReaderSlots } from "../../../src/events/reader-slots.ts";
import type { EventPage } from "../../../src/schemas/events.ts";
import { adminToken, newAgent, send, signedUp, uniqueName } from "../support.ts";
import { eventLog, listEvents } from "./event-support.ts";

const viewer = async (selector: string) => await signedUp([{ role: "viewer", selector }]);
const online = (apId: string) =>
  eventLog.append([{ atMs: Date.now(), type: "agent.online", severity: "info", apId, data: {} }]);

/** Runs a request that waits, and returns its response and how long it took. */
async function timed<T>(work: Promise<T>): Promise<{ result: T; ms: number }> {
  const startMs = performance.now();
  const result = await work;
  return { result, ms: performance.now() - startMs };
}

describe("a request that waits for events", () => {
  it("returns as soon as there is an event that the caller sees", async () => {
    const site = uniqueName();
    const [seen, hidden, { token }] = [await newAgent({}, { site }), await newAgent(), await viewer(`site=${site}`)];
    const waiting = timed(listEvents(token, "wait=20"));
    await scheduler.wait(300);
    await online(hidden.apId);
    await scheduler.wait(1_500);
    await online(seen.apId);
    const { result, ms } = await waiting;
    expect(result.events.map(({ ap_id }) => ap_id)).toEqual([seen.apId]);
    expect(ms).toBeGreaterThan(1_700);
    expect(ms).toBeLessThan(6_000);
    // Continuing from the cursor, the caller gets the event no second time.
    expect((await listEvents(token, `after=${result.next_after}`)).events).toEqual([]);
  });

  it("returns at once if there is an event, and with a new cursor at the end of the time", async () => {
    const site = uniqueName();
    const after = await eventLog.newestId();
    const { apId } = await newAgent({}, { site });
    const { token } = await viewer(`site=${site}`);
    const first = await timed(listEvents(token, `after=${after}&wait=20`));
    expect(first.result.events[0]?.ap_id).toBe(apId);
    expect(first.ms).toBeLessThan(10_000);
    const waiting = timed(listEvents(token, `after=${first.result.next_after}&wait=2`));
    await newAgent();
    const { result, ms } = await waiting;
    expect([result.events, result.has_more]).toEqual([[], false]);
    expect(result.next_after).toBeGreaterThan(first.result.next_after);
    expect(ms).toBeGreaterThan(1_900);
  });

  it("ends with 401 without events, if the caller loses its access meanwhile", async () => {
    const site = uniqueName();
    const { apId } = await newAgent({}, { site });
    const { username, token } = await viewer(`site=${site}`);
    const waiting = send("GET", "/api/v1/events?wait=15", undefined, token);
    await scheduler.wait(200);
    const path = `/api/v1/users/${encodeURIComponent(username)}/grants`;
    expect((await send("PUT", path, { grants: [] }, await adminToken())).status).toBe(200);
    await scheduler.wait(3_000);
    await online(apId);
    expect((await waiting).status).toBe(401);
  });

  it("is one of at most 16 per account", async () => {
    const { token } = await signedUp([]);
    const waiting = Array.from({ length: 17 }, () => send("GET", "/api/v1/events?wait=2", undefined, token));
    const responses = await Promise.all(waiting);
    const statuses = responses.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([...Array.from({ length: 16 }, () => 200), 429]);
    const again = await send("GET", "/api/v1/events?wait=1", undefined, token);
    expect([again.status, ((await again.json()) as EventPage).events]).toEqual([200, []]);
  });
});

describe("the slots of readers", () => {
  it("are free again after a reader has left, or has not reported for ten seconds", () => {
    const clock = { ms: 0 };
    const slots = new ReaderSlots(2, () => clock.ms);
    const [first] = [slots.take("a"), slots.take("a"), slots.take("b")];
    expect(() => slots.take("a")).toThrow();
    first?.release();
    const third = slots.take("a");
    clock.ms += 6_000;
    third.touch();
    expect(() => slots.take("a")).toThrow();
    clock.ms += 6_000;
    slots.take("a");
    expect(() => slots.take("a")).toThrow();
  });
});

describe("the query for the newest event", () => {
  it("runs once a second for any number of readers", async () => {
    let queries = 0;
    const newest = createNewestEvent({ newestId: async () => Math.floor(queries++ / 2) });
    const deadlineMs = Date.now() + 10_000;
    const found = await Promise.all(Array.from({ length: 50 }, () => newest.waitAfter(0, deadlineMs)));
    expect(new Set(found)).toEqual(new Set([1]));
    expect(queries).toBe(3);
  });
});
