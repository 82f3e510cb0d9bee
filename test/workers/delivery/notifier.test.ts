import { eq } from "drizzle-orm";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { events } from "../../../src/events/event-tables.ts";
import type { NetworkEvent } from "../../../src/schemas/events.ts";
import {
  addEvents,
  BY,
  clean,
  database,
  newUser,
  rowOf,
  store,
  subscribe,
  userStore,
  World,
} from "./delivery-support.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

let world: World;
beforeEach(async () => {
  await clean();
  world = new World();
});
afterAll(clean);

const url = (host: string): string => `https://${host}/hook`;

describe("a webhook", () => {
  it("gets events with a signature that standardwebhooks verifies", async () => {
    const { secret } = await subscribe(await newUser(), url("good.test"));
    const [id] = await addEvents({ labels: { site: "Zürich" }, data: { text: "“quoted”" } });
    await world.receiver("good.test");
    await world.step();
    const [request] = world.receiver("good.test").requests;
    const headers = Object.fromEntries(request?.headers ?? []);
    const verified = new Webhook(secret).verify(request?.text ?? "", headers) as { type: string; data: NetworkEvent };
    expect(verified).toMatchObject({
      type: "agent.updated",
      timestamp: expect.any(String),
      data: { id, ap_id: "ap-1", labels: { site: "Zürich" }, data: { text: "“quoted”" } },
    });
    expect(headers).toMatchObject({ "webhook-id": `msg_${id}`, "content-type": "application/json" });
    expect(() => new Webhook(secret).verify(`${request?.text} `, headers)).toThrow(/signature/);
  });

  it("that returns 500, hangs, redirects to 127.0.0.1 or sends 1 GB does no harm and delays no other", async () => {
    world.restart(3_000);
    const owner = await newUser();
    let pulled = 0;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => {
          pulled++;
          controller.enqueue(new Uint8Array(64 * 1024));
        },
      });
    world.receiver("broken.test").respond = () => new Response("no", { status: 500 });
    world.receiver("hanging.test").respond = () => new Promise(() => {});
    world.receiver("redirecting.test").respond = () =>
      new Response(null, { status: 307, headers: { Location: "http://127.0.0.1/admin" } });
    world.receiver("large.test").respond = () => new Response(endless());
    world.receiver("slow-body.test").respond = () => new Response(new ReadableStream());
    const good = world.receiver("good.test");
    const hosts = ["broken", "hanging", "redirecting", "large", "slow-body", "good"];
    const ids = new Map<string, string>();
    for (const host of hosts) ids.set(host, (await subscribe(owner, url(`${host}.test`))).id);
    await addEvents({}, {});
    await world.dispatcher.poll();
    await expect.poll(() => good.requests.length, { timeout: 2_500, interval: 10 }).toBe(2);
    await world.dispatcher.idle();
    const errorOf = async (host: string) => (await rowOf(ids.get(host) ?? ""))?.lastError;
    expect(await errorOf("broken")).toBe("HTTP 500");
    expect(await errorOf("hanging")).toBe("No response within 3000 ms");
    expect(await errorOf("redirecting")).toBe("HTTP 307: redirects are not followed");
    for (const host of ["large", "slow-body", "good"]) expect(await errorOf(host)).toBeNull();
    expect(world.unreachable).toEqual([]);
    expect(pulled).toBeLessThan(10);
  });

  it("does not reach this machine, even if its subscription is older than the setting", async () => {
    const { id } = await subscribe(await newUser(), "http://127.0.0.1:9000/");
    await addEvents({});
    await world.step();
    expect(world.unreachable).toEqual([]);
    expect((await rowOf(id))?.lastError).toBe("The address is not on the public internet");
  });

  it("that is gone stops its subscription at once", async () => {
    world.receiver("gone.test").respond = () => new Response(null, { status: 410 });
    const owner = await newUser();
    const { id } = await subscribe(owner, url("gone.test"));
    await addEvents({});
    await world.step();
    expect(await rowOf(id)).toMatchObject({ stoppedAt: expect.any(Date), lastError: "HTTP 410: the receiver is gone" });
    const failing = await database.select().from(events).where(eq(events.type, "subscription.failing"));
    expect(failing).toMatchObject([{ severity: "warning", ownerId: owner.id, data: { subscription_id: id } }]);
    await addEvents({});
    await world.step(HOUR_MS);
    expect(world.receiver("gone.test").requests.length).toBe(1);
  });
});

describe("a receiver that is down for a day", () => {
  it("stops its subscription with one event, and gets the backlog in order after it is resumed", async () => {
    const receiver = world.receiver("down.test");
    receiver.respond = () => new Response(null, { status: 503 });
    const { id } = await subscribe(await newUser(), url("down.test"), { types: ["agent.updated"] });
    const startMs = world.nowMs;
    const ids = await addEvents(...Array.from({ length: 250 }, (_, i) => ({ apId: `ap-${i % 3}` })));
    const delays: number[] = [];
    for (let row = await rowOf(id); row?.stoppedAt === null; row = await rowOf(id)) {
      const dueMs = row.dueAt?.getTime() ?? world.nowMs;
      if (row.dueAt !== null) delays.push(dueMs - world.nowMs);
      // Not before it is due.
      const attempts = receiver.requests.length;
      if (dueMs > world.nowMs + 1) await world.step(dueMs - world.nowMs - 1);
      expect(receiver.requests.length).toBe(attempts);
      await world.step(dueMs - world.nowMs);
      expect(receiver.requests.length).toBeGreaterThan(attempts);
    }
    expect(delays.slice(0, 5)).toEqual([1, 2, 4, 8, 16].map((s) => s * SECOND_MS));
    expect(Math.max(...delays)).toBe(15 * MINUTE_MS);
    const stopped = await rowOf(id);
    expect(stopped).toMatchObject({ lastError: "HTTP 503", failingSince: new Date(startMs) });
    expect(world.nowMs - startMs).toBeGreaterThanOrEqual(24 * HOUR_MS);
    expect(world.nowMs - startMs).toBeLessThan(24 * HOUR_MS + 16 * MINUTE_MS);
    const failing = await database.select().from(events).where(eq(events.type, "subscription.failing"));
    expect(failing.length).toBe(1);
    expect((await store.find(id))?.backlog).toBe(250);

    receiver.respond = () => new Response();
    receiver.requests.length = 0;
    await world.step(HOUR_MS);
    expect(receiver.requests).toEqual([]);
    await store.resume(id, BY);
    await world.step();
    for (const lane of [0, 1, 2]) {
      const ofAgent = ids.filter((_, i) => i % 3 === lane);
      expect(receiver.got.filter((one) => ofAgent.includes(one))).toEqual(ofAgent);
    }
    expect(receiver.got.length).toBe(250);
    expect(await store.find(id)).toMatchObject({ stoppedAt: null, failingSince: null, lastError: null, backlog: 0 });
  });

  it("keeps its back-off over a restart of the service", async () => {
    const receiver = world.receiver("down.test");
    receiver.respond = () => new Response(null, { status: 503 });
    await subscribe(await newUser(), url("down.test"));
    await addEvents({});
    for (let i = 0; i < 4; i++) await world.step(HOUR_MS);
    world.restart();
    await world.step(SECOND_MS);
    expect(receiver.requests.length).toBe(4);
    await world.step(10 * SECOND_MS);
    expect(receiver.requests.length).toBe(5);
  });
});

describe("a receiver that fails now and then", () => {
  it("is not taken for one that is down: it gets its events within seconds", async () => {
    const receiver = world.receiver("flaky.test");
    receiver.respond = () => new Response(null, { status: receiver.requests.length % 5 === 0 ? 500 : 200 });
    const { id } = await subscribe(await newUser(), url("flaky.test"));
    await addEvents(...Array.from({ length: 200 }, (_, i) => ({ apId: `ap-${i % 8}` })));
    for (let i = 0; i < 30 && (await store.find(id))?.backlog !== 0; i++) await world.step(1.5 * SECOND_MS);
    expect(await store.find(id)).toMatchObject({ backlog: 0 });
    expect(await rowOf(id)).toMatchObject({ failures: 0, failingSince: null });
  });
});

describe("the order of events", () => {
  it("is kept per agent with an unreliable receiver, and repeated events keep their id", async () => {
    const receiver = world.receiver("flaky.test");
    const accepted: number[] = [];
    let seed = 7;
    const chance = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    receiver.respond = async ({ id }) => {
      await new Promise((resolve) => setTimeout(resolve, chance() * 5));
      if (chance() < 0.2) return new Response(null, { status: 500 });
      accepted.push(id);
      // The receiver got it, but the service does not know.
      if (chance() < 0.1) throw new Error("Network connection lost.");
      return new Response();
    };
    const { id } = await subscribe(await newUser(null, ["admin"]), url("flaky.test"));
    const ids = await addEvents(
      ...Array.from({ length: 120 }, (_, i) => ({ apId: i % 12 === 0 ? null : `ap-${i % 12}` })),
    );
    for (let i = 0; i < 200 && (await store.find(id))?.backlog !== 0; i++) {
      if (i % 5 === 4) world.restart();
      await world.step(20 * MINUTE_MS);
    }
    expect((await rowOf(id))?.cursor).toBe(ids.at(-1));
    expect(new Set(accepted)).toEqual(new Set(ids));
    for (let lane = 0; lane < 12; lane++) {
      const ofAgent = ids.filter((_, i) => i % 12 === lane);
      // The first delivery of each event comes after the first of all before it.
      expect([...new Set(accepted)].filter((one) => ofAgent.includes(one))).toEqual(ofAgent);
    }
    const idsByEvent = Map.groupBy(
      receiver.requests,
      ({ text }) => (JSON.parse(text) as { data: NetworkEvent }).data.id,
    );
    for (const [event, requests] of idsByEvent)
      expect(new Set(requests.map(({ headers }) => headers.get("webhook-id")))).toEqual(new Set([`msg_${event}`]));
  });

  it("does not let the events of one agent delay those of others", async () => {
    world.receiver("picky.test").respond = ({ ap_id }) => new Response(null, { status: ap_id === "bad" ? 400 : 200 });
    await subscribe(await newUser(), url("picky.test"));
    const [bad, ...good] = await addEvents(
      { apId: "bad" },
      ...Array.from({ length: 30 }, (_, i) => ({ apId: `ap-${i}` })),
    );
    await world.step();
    await world.step(MINUTE_MS);
    const { got } = world.receiver("picky.test");
    expect(got.filter((id) => id === bad).length).toBe(2);
    expect(got.filter((id) => id !== bad).toSorted((a, b) => a - b)).toEqual(good);
  });
});

describe("the grants of the owner", () => {
  it("limit the events, and nothing more is delivered after they are revoked", async () => {
    const owner = await newUser([{ role: "viewer", selector: "site=uk" }]);
    const receiver = world.receiver("good.test");
    await subscribe(owner, url("good.test"));
    const inScope = { labels: { site: "uk" } };
    const [seen] = await addEvents(
      inScope,
      { labels: { site: "fr" } },
      { apId: null },
      { ownerId: owner.id, apId: "emu" },
    );
    await world.step();
    expect(receiver.got).toEqual([seen, (seen ?? 0) + 3]);
    await userStore.update(owner.name, { grants: [] }, BY);
    await addEvents(inScope, inScope);
    await world.step();
    expect(receiver.requests.length).toBe(2);
    await userStore.update(owner.name, { grants: null }, BY);
    await addEvents(inScope);
    await world.step();
    expect(receiver.requests.length).toBe(3);
  });

  it("are those at the time of each attempt, not those of the event", async () => {
    const owner = await newUser([{ role: "viewer", selector: "site=uk" }]);
    const receiver = world.receiver("down.test");
    receiver.respond = () => new Response(null, { status: 500 });
    const { id } = await subscribe(owner, url("down.test"));
    const [last] = await addEvents({ labels: { site: "uk" } });
    await world.step();
    await userStore.update(owner.name, { grants: [] }, BY);
    await world.step(MINUTE_MS);
    expect(receiver.requests.length).toBe(1);
    await world.step(MINUTE_MS);
    const row = await rowOf(id);
    expect(row?.cursor).toBeGreaterThanOrEqual(last ?? 0);
    expect(row).toMatchObject({ failures: 0, failingSince: null, dueAt: null });
  });

  it("end with the account", async () => {
    const owner = await newUser();
    const { id } = await subscribe(owner, url("good.test"));
    // Without the transaction that deletes both.
    await userStore.insert({ username: "other@example.com", passwordHash: "", roles: ["admin"] }, BY);
    const noJobs = () =>
      [0, 1, 2, 3].map(() => database.delete(events).where(eq(events.id, -1)).returning({ jobNumber: events.actor }));
    await userStore.delete(owner.name, BY, noJobs as never);
    await addEvents({});
    await world.step();
    expect(world.receiver("good.test").requests).toEqual([]);
    expect(await rowOf(id)).toBeUndefined();
  });

  it("let administrators see events about no agent, and others those that they caused", async () => {
    const [admin, user] = [await newUser(null, ["admin"]), await newUser()];
    await subscribe(admin, url("admin.test"));
    await subscribe(user, url("user.test"));
    const [own = 0] = await addEvents({ apId: null, ownerId: user.id }, { apId: null, actor: "user:x@example.com" });
    const [admins, users] = [world.receiver("admin.test"), world.receiver("user.test")];
    await world.step();
    expect([admins.got, users.got]).toEqual([[own, own + 1], [own]]);
  });
});

describe("a filter", () => {
  it("selects by type, severity and labels, and a change of it is effective at once", async () => {
    const { id } = await subscribe(await newUser(), url("good.test"), {
      types: ["alert.fired", "alert.resolved"],
      severity: "warning",
      selector: "site=uk/*",
    });
    const receiver = world.receiver("good.test");
    const labels = { site: "uk/bath" };
    const [first = 0] = await addEvents(
      { type: "alert.fired", severity: "critical", labels },
      { type: "alert.fired", severity: "info", labels },
      { type: "agent.offline", severity: "critical", labels },
      { type: "alert.resolved", severity: "warning", labels: { site: "fr" } },
      { type: "alert.resolved", severity: "warning", labels },
    );
    await world.step();
    expect(receiver.got).toEqual([first, first + 4]);
    expect(await store.find(id)).toMatchObject({ backlog: 0, deliveredAt: new Date(world.nowMs) });
    await store.update(id, { filter: { types: [], selector: "", severity: "info" } }, BY, "change", false);
    await addEvents({});
    await world.step();
    expect(receiver.got).toEqual([first, first + 4, first + 5]);
  });

  it("that selects nothing moves the cursor without a write per event", async () => {
    const { id } = await subscribe(await newUser(), url("good.test"), { types: ["alert.fired"] });
    await world.step();
    const [last] = await addEvents({}, {}, {});
    await world.step();
    expect((await rowOf(id))?.cursor).toBeLessThan(last ?? 0);
    await world.step(11 * SECOND_MS);
    expect((await rowOf(id))?.cursor).toBe((last ?? 0) + 2);
  });
});
