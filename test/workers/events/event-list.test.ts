import { lte } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createEventLog, pruneEvents } from "../../../src/events/event-log.ts";
import { createEventReader } from "../../../src/events/event-reader.ts";
import { events } from "../../../src/events/event-tables.ts";
import type { EventType } from "../../../src/schemas/events.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { putLabels } from "../fleet/requests.ts";
import { adminToken, newAgent, newApp, send, settings, signedUp, tokenOf, uniqueName } from "../support.ts";
import { eventLog, listEvents } from "./event-support.ts";

const newEvent = (type: EventType, data: object, over: object = {}) => ({
  atMs: Date.now(),
  type,
  severity: "info" as const,
  data: { ...data },
  ...over,
});
const viewer = async (selector: string) => (await signedUp([{ role: "viewer", selector }])).token;
const deleteAgent = async (apId: string) => {
  expect((await send("DELETE", `/api/v1/agents/${apId}`, undefined, await adminToken())).status).toBe(200);
};
const status = async (query: string) =>
  (await send("GET", `/api/v1/events?${query}`, undefined, await adminToken())).status;

describe("the event log", () => {
  it("shows events about agents in the caller's scope only, also after they were deleted", async () => {
    const [site, after] = [uniqueName(), await eventLog.newestId()];
    const [seen, hidden] = [await newAgent({}, { site }), await newAgent({}, { site: `not-${site}` })];
    await deleteAgent(seen.apId);
    await deleteAgent(hidden.apId);
    const agentsOf = async (token: string) =>
      (await listEvents(token, `after=${after}&limit=1000`)).events
        .filter(({ ap_id }) => ap_id === seen.apId || ap_id === hidden.apId)
        .map(({ ap_id, type }) => `${ap_id === seen.apId ? "seen" : "hidden"} ${type}`);
    const all = ["seen", "hidden"].flatMap((one) => [`${one} agent.registered`, `${one} agent.onboarded`]);
    const ofSeen = ["seen agent.registered", "seen agent.onboarded", "seen agent.deleted"];
    expect(await agentsOf(await viewer(`site=${site}`))).toEqual(ofSeen);
    expect(await agentsOf(await viewer("site=elsewhere"))).toEqual([]);
    expect(await agentsOf((await signedUp([])).token)).toEqual([]);
    expect(await agentsOf((await newApp({ ap_ids: [seen.apId] })).token)).toEqual(ofSeen);
    for (const token of [await adminToken(), (await signedUp()).token]) {
      expect((await agentsOf(token)).toSorted()).toEqual(
        [...all, "seen agent.deleted", "hidden agent.deleted"].toSorted(),
      );
    }
  });

  it("follows an agent's labels: an event is visible by the labels at its time", async () => {
    const [site, after] = [uniqueName(), await eventLog.newestId()];
    const { apId } = await newAgent({}, { site: `${site}/a` });
    await putLabels(apId, { site: `${site}/b` }, await adminToken());
    const typesFor = async (place: string) =>
      (await listEvents(await viewer(`site=${site}/${place}`), `after=${after}`)).events.map(({ type }) => type);
    expect(await typesFor("a")).toEqual(["agent.registered", "agent.onboarded"]);
    expect(await typesFor("b")).toEqual(["agent.relabelled"]);
  });

  it("shows events about no agent to administrators and to the account that they belong to", async () => {
    const after = await eventLog.newestId();
    const [owner, other, job] = [await signedUp(), await signedUp(), uniqueName()];
    await send("POST", `/api/v1/callback/agent_data?job_number=${job}`, [], owner.token);
    const sees = async (token: string, text: string) =>
      JSON.stringify((await listEvents(token, `after=${after}&limit=1000`)).events).includes(text);
    expect([await sees(owner.token, job), await sees(other.token, job)]).toEqual([true, false]);
    expect(await sees(await adminToken(), job)).toBe(true);
    // The creation of the account, by an anonymous caller.
    expect([await sees(owner.token, other.username), await sees(await adminToken(), other.username)]).toEqual([
      ...[false, true],
    ]);
    // A token of fewer scopes does not gain the audit trail.
    const narrowed = await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", "agents:read");
    expect(await sees(narrowed, other.username)).toBe(false);
  });

  it("returns the last events of one agent, and a cursor that continues after them", async () => {
    const site = uniqueName();
    const [{ apId }, other] = [await newAgent({}, { site }), await newAgent({}, { site })];
    await putLabels(apId, { site, floor: "1" }, await adminToken());
    await putLabels(other.apId, { site, floor: "1" }, await adminToken());
    const list = async (token: string, query: string) => await listEvents(token, `agent=${apId}&${query}`);
    const admin = await adminToken();
    const last = await list(admin, "newest=true&limit=2");
    expect(last.events.map(({ type }) => type)).toEqual(["agent.onboarded", "agent.relabelled"]);
    expect(last.events.every(({ ap_id }) => ap_id === apId)).toBe(true);
    await putLabels(other.apId, { site, floor: "2" }, await adminToken());
    await putLabels(apId, { site, floor: "2" }, await adminToken());
    const next = await list(admin, `after=${last.next_after}`);
    expect(next.events.map(({ type, ap_id }) => [type, ap_id])).toEqual([["agent.relabelled", apId]]);
    expect((await list(await viewer("site=elsewhere"), "newest=true")).events).toEqual([]);
    expect(await status("newest=true&after=1")).toBe(422);
  });

  it("shows an alert about a group of agents by the label of the group", async () => {
    const [site, after] = [uniqueName(), await eventLog.newestId()];
    await eventLog.append([newEvent("alert.fired", { rule: site }, { labels: { site } })]);
    const count = async (token: string) =>
      (await listEvents(token, `after=${after}&types=alert.fired`)).events.filter(({ labels }) => labels.site === site)
        .length;
    const tokens = [
      await viewer(`site=${site}`),
      (await signedUp()).token,
      await viewer("site=x"),
      (await newApp({ ap_ids: ["x"] })).token,
    ];
    expect(await Promise.all(tokens.map(count))).toEqual([1, 1, 0, 0]);
  });

  it("filters by type, selector and severity", async () => {
    const [site, after, admin] = [uniqueName(), await eventLog.newestId(), await adminToken()];
    const [{ apId }] = [await newAgent({}, { site }), await newAgent()];
    const offline = newEvent("agent.offline", {}, { apId, severity: "warning" });
    await eventLog.append([newEvent("agent.online", {}, { apId }), offline]);
    const typesOf = async (query: string) =>
      (await listEvents(admin, `after=${after}&limit=1000&${query}`)).events
        .filter(({ ap_id }) => ap_id === apId)
        .map(({ type }) => type);
    const selector = `selector=${encodeURIComponent(`site=${site}`)}`;
    expect(await typesOf(selector)).toEqual(["agent.registered", "agent.onboarded", "agent.online", "agent.offline"]);
    expect(await typesOf("types=agent.online,agent.offline")).toEqual(["agent.online", "agent.offline"]);
    expect(await typesOf("severity=warning")).toEqual(["agent.offline"]);
    expect(await typesOf("severity=critical")).toEqual([]);
    // A selector selects only events with labels, also if it has only negations.
    const negated = await listEvents(admin, `after=${after}&limit=1000&selector=${encodeURIComponent("!none")}`);
    expect(negated.events.filter(({ ap_id }) => ap_id === null)).toEqual([]);
    expect(
      await Promise.all(
        ["types=agent.exploded", "severity=some", "selector=%3D", "limit=0", "wait=26", "after=-1"].map(status),
      ),
    ).toEqual(Array.from({ length: 6 }, () => 422));
  });
});

describe("the cursor", () => {
  it("returns each event once and in order, page by page", async () => {
    const [site, after] = [uniqueName(), await eventLog.newestId()];
    const { apId } = await newAgent({}, { site });
    await eventLog.append(Array.from({ length: 25 }, (_, i) => newEvent("agent.online", { i }, { apId })));
    const token = await viewer(`site=${site}`);
    const found: number[] = [];
    for (let page = await listEvents(token, `after=${after}&limit=10`); ; ) {
      found.push(...page.events.map(({ id }) => id));
      expect(page.events.length).toBeLessThanOrEqual(10);
      if (!page.has_more) break;
      page = await listEvents(token, `after=${page.next_after}&limit=10`);
    }
    expect(found).toHaveLength(27);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
    expect(new Set(found).size).toBe(27);
  });

  it("moves forward past events that the caller does not see", async () => {
    const after = await eventLog.newestId();
    await eventLog.append(Array.from({ length: 2_500 }, (_, i) => newEvent("agent.online", { i })));
    const { token } = await signedUp([]);
    let [cursor, pages] = [after, 0];
    for (let has_more = true; has_more; pages++) {
      const page = await listEvents(token, `after=${cursor}`);
      expect(page.events).toEqual([]);
      expect(page.next_after).toBeGreaterThan(cursor);
      ({ next_after: cursor, has_more } = page);
    }
    expect(cursor).toBeGreaterThanOrEqual(after + 2_500);
    // One request scans at most 1,000 events.
    expect(pages).toBeGreaterThanOrEqual(3);
  });

  it("starts at the newest event by default, and at the oldest with 0", async () => {
    const newest = await eventLog.newestId();
    const page = await listEvents(await adminToken());
    expect(page).toMatchObject({ events: [], has_more: false });
    expect(page.next_after).toBeGreaterThanOrEqual(newest);
    const [oldest] = await eventLog.readAfter({ after: 0, limit: 1 });
    const first = await listEvents(await adminToken(), "after=0&limit=1");
    expect(first.events.map(({ id }) => id)).toEqual([oldest?.id]);
  });

  it("of another database is rejected", async () => {
    expect(await status(`after=${(await eventLog.newestId()) + 100_000}`)).toBe(422);
  });
});

describe("the retention of events", () => {
  const database = createDatabase({ url: settings.EMPTY_LIBSQL_URL ?? "" });
  const log = createEventLog(database);

  it("removes old events, keeps new ones, and never assigns an id again", async () => {
    const DAY_MS = 86_400_000;
    await database.delete(events).where(lte(events.id, await log.newestId()));
    const ages = [40, 31, 29, 0];
    await log.append(ages.map((days) => newEvent("component.up", { days }, { atMs: Date.now() - days * DAY_MS })));
    await pruneEvents(database, 30 * DAY_MS);
    expect((await log.readAfter({ after: 0, limit: 10 })).map(({ data }) => data.days)).toEqual([29, 0]);
    const newest = await log.newestId();
    await pruneEvents(database, -DAY_MS);
    expect(await log.readAfter({ after: 0, limit: 10 })).toEqual([]);
    expect(await log.newestId()).toBe(newest);
    await log.append([newEvent("component.up", {})]);
    expect(await log.newestId()).toBe(newest + 1);
  });

  it("limits what a page holds in bytes", async () => {
    const after = await log.newestId();
    const text = "x".repeat(300_000);
    await log.append(Array.from({ length: 6 }, () => newEvent("component.up", { text })));
    const admin = {
      kind: "admin",
      id: "a",
      name: "a",
      version: 1,
      expiresAtMs: Number.MAX_SAFE_INTEGER,
      roles: [],
    } as const;
    const actor = { ...admin, scopes: new Set(["agents:read", "audit:read"]), hasFullScope: true, requestId: "" };
    const reader = createEventReader({ eventLog: log, newest: { waitAfter: async () => undefined } });
    const query = { selector: [], severity: "info", limit: 100, waitMs: 0 } as const;
    const page = await reader.list(async () => actor, { ...query, after });
    expect([page.events.length, page.has_more]).toEqual([4, true]);
    const rest = await reader.list(async () => actor, { ...query, after: page.next_after });
    expect([rest.events.length, rest.has_more]).toEqual([2, false]);
    await database.delete(events).where(lte(events.id, await log.newestId()));
  });
});
