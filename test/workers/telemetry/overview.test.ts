import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import type { Actor } from "../../../src/auth/identity.ts";
import { createOverview } from "../../../src/fleet/overview.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import type { AccessPointState, Overview } from "../../../src/schemas/fleet/overview.ts";
import type { AgentState } from "../../../src/schemas/metrics.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { LatestCache } from "../../../src/telemetry/shard/latest.ts";
import { adminToken, appWith, bearer, newAgent, newApp, send, settings, signedUp, tokenOf } from "../support.ts";

const post = (body: unknown, token: string) => send("POST", "/api/v1/agent_update/update", body, token);
const getOverview = async (token: string) => {
  const response = await send("GET", "/api/v1/overview", undefined, token);
  expect(response.status).toBe(200);
  return (await response.json()) as Overview;
};
const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
/** The overview may be a few seconds old. */
const soon = { timeout: 10_000, interval: 200 };

describe("the overview", () => {
  it("lists every access point with its type, location, presence and latest metrics", async () => {
    const location = { latitude: 51.45, longitude: -2.59 };
    const [quiet, fresh, slow, gone, odd] = await Promise.all([
      newAgent(),
      newAgent({ access_point_type: "LiFi", geolocation: location }),
      newAgent({ interval: 60 }),
      newAgent(),
      newAgent({ access_point_type: 5, interval: "often", geolocation: { lat: 0, lon: 0 } }),
    ]);
    const minuteAgo = secondsAgo(60);
    await post({ load: 0.5, quality: 0, users: 7, other: 1, ts: secondsAgo(1) }, fresh.token);
    const messageOf = ({ apId }: { apId: string }, received_at: string, report: object) => ({
      ap_id: apId,
      received_at,
      report,
    });
    const messages = [
      messageOf(slow, minuteAgo, { load: 1, users: "many" }),
      messageOf(gone, minuteAgo, { load: 0.1 }),
      messageOf(odd, secondsAgo(301), { load: 0.1 }),
    ];
    const { token: bridge } = await newApp({ broker: true });
    expect((await send("POST", "/api/v1/bridge/data", { messages }, bridge)).status).toBe(200);
    const { token } = await signedUp();
    const stateOf = async ({ apId }: { apId: string }) =>
      (await getOverview(token)).access_points.find(({ ap_id }) => ap_id === apId);
    const unknown = { access_point_type: null, latitude: null, longitude: null, site: null, onboard: true };
    const none = { load: null, quality: null, users: null };
    await expect
      .poll(() => stateOf(fresh), soon)
      .toEqual({
        ap_id: fresh.apId,
        access_point_type: "LiFi",
        site: null,
        ...location,
        onboard: true,
        online: true,
        last_seen: expect.any(String),
        load: 0.5,
        quality: 0,
        users: 7,
      });
    expect(await stateOf(quiet)).toEqual({ ap_id: quiet.apId, ...unknown, ...none, online: false, last_seen: null });
    expect(await stateOf(slow)).toMatchObject({ ...unknown, ...none, load: 1, online: true, last_seen: minuteAgo });
    expect(await stateOf(gone)).toMatchObject({ ...none, load: 0.1, online: false, last_seen: minuteAgo });
    expect(await stateOf(odd)).toMatchObject({ ...unknown, ...none, latitude: 0, longitude: 0, online: false });
    const names = (await getOverview(token)).access_points.map(({ ap_id }) => ap_id);
    expect(names).toEqual(names.toSorted());
  });

  it("shows an app only its own access points", async () => {
    const { apId } = await newAgent();
    await newAgent();
    const { token } = await newApp({ ap_ids: [apId, "none"] });
    await expect
      .poll(async () => (await getOverview(token)).access_points.map(({ ap_id }) => ap_id), soon)
      .toEqual([apId]);
  });

  it("requires the permissions to list agents and to read telemetry", async () => {
    const statusFor = async (token: string) => (await send("GET", "/api/v1/overview", undefined, token)).status;
    for (const permissions of [{ agents: false }, { data: false }])
      expect(await statusFor((await newApp(permissions)).token)).toBe(403);
    for (const scope of ["agents:read", "telemetry:read", "agents:read telemetry:read"]) {
      const token = await tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", scope);
      expect(await statusFor(token), scope).toBe(scope.includes(" ") ? 200 : 403);
    }
  });

  it("combines the metrics of all shards and omits those of a shard that does not respond", async () => {
    const agents = await Promise.all(Array.from({ length: 8 }, () => newAgent()));
    const token = await adminToken();
    const usersFrom = async (app: ReturnType<typeof appWith>) => {
      const response = await app.request("/api/v1/overview", { headers: bearer(token) }, env);
      expect(response.status).toBe(200);
      const states = ((await response.json()) as Overview).access_points;
      return agents.map(({ apId }) => states.find(({ ap_id }) => ap_id === apId)?.users);
    };
    const threeShards = { AGENT_SHARDS: "3" };
    for (const [users, agent] of agents.entries()) {
      const response = await appWith(threeShards).request("/api/v1/agent_update/update", {
        method: "POST",
        headers: { ...bearer(agent.token), "Content-Type": "application/json" },
        body: JSON.stringify({ users }),
      });
      expect(response.status).toBe(200);
    }
    expect(await usersFrom(appWith(threeShards))).toEqual(agents.map((_, users) => users));
    const without = async (shard: number, latest: () => Promise<never>) => {
      const { AGENT_SHARD: all } = env;
      const get = (id: DurableObjectId) => (id.name === `shard-${shard}` ? { latest } : all.get(id));
      const AGENT_SHARD = { idFromName: all.idFromName.bind(all), get } as unknown as typeof all;
      return await usersFrom(appWith(threeShards, { AGENT_SHARD }));
    };
    const results = await Promise.all([
      without(0, () => Promise.reject(new Error("broken"))),
      without(1, () => Promise.reject(new Error("broken"))),
      without(2, () => new Promise(() => undefined)),
    ]);
    // Each access point belongs to one of the three shards.
    for (const users of agents.keys())
      expect(results.map((usersOfAgents) => usersOfAgents[users]).toSorted()).toEqual([users, users, null]);
  });

  it("returns 503 if the accounts database is unavailable, and knows from the shards who reports if ClickHouse is", async () => {
    const token = await adminToken();
    const overviewWith = async (changes: Record<string, string>) =>
      await appWith(changes).request("/api/v1/overview", { headers: bearer(token) }, env);
    expect((await overviewWith({ LIBSQL_URL: "http://127.0.0.1:9" })).status).toBe(503);
    // A replica is not necessary.
    expect((await overviewWith({ LIBSQL_READ_URL: "http://127.0.0.1:9" })).status).toBe(200);
    const { apId, token: agentToken } = await newAgent();
    expect((await post({ users: 1 }, agentToken)).status).toBe(200);
    const { apId: silent } = await newAgent();
    const stateIn = async (response: Response, name: string) =>
      ((await response.json()) as Overview).access_points.find(({ ap_id }) => ap_id === name);
    const outage = { CLICKHOUSE_URL: "http://127.0.0.1:9" };
    const reporting = await stateIn(await overviewWith(outage), apId);
    expect(reporting).toMatchObject({ online: true, users: 1 });
    expect(reporting).not.toHaveProperty("last_seen_unknown");
    const unknown = { last_seen: null, last_seen_unknown: true };
    expect(await stateIn(await overviewWith(outage), silent)).toMatchObject(unknown);
    expect(await stateIn(await overviewWith({}), silent)).not.toHaveProperty("last_seen_unknown");
    // The list of agents says it as well.
    const list = await appWith(outage).request("/api/v1/agents/", { headers: bearer(token) }, env);
    const listed = ((await list.json()) as AgentState[]).find(({ ap_id }) => ap_id === silent);
    expect(listed).toMatchObject(unknown);
  });

  it("returns access point types with any characters unchanged", async () => {
    const types = ["\ud800", "\udc00x", "\u{1F4A1}", "a\u0000b", "", '"]]', "x".repeat(64)];
    const agents = await Promise.all(
      types.map((access_point_type) => newAgent({ access_point_type, interval: 1e308 })),
    );
    const { token } = await signedUp();
    const typesOf = async () => {
      const states = (await getOverview(token)).access_points;
      return agents.map(({ apId }) => states.find(({ ap_id }) => ap_id === apId)?.access_point_type);
    };
    await expect.poll(typesOf, soon).toEqual(types);
  });

  it("omits access point types of more than 64 characters", async () => {
    const long = await Promise.all(
      ["x".repeat(65), "x".repeat(100_000), `\u0000${"x".repeat(64)}`].map(async (access_point_type) => {
        return (await newAgent({ access_point_type })).apId;
      }),
    );
    const outlines = await createAgentStore(createDatabase({ url: settings.LIBSQL_URL ?? "" })).outlines();
    const found = outlines.filter(({ apId }) => long.includes(apId));
    expect(found.map(({ accessPointType }) => accessPointType)).toEqual([null, null, null]);
  });
});

describe("the cache of the overview", () => {
  const actor: Actor = {
    kind: "admin",
    id: "",
    name: "",
    version: 0,
    expiresAtMs: 0,
    roles: [],
    requestId: "",
    hasFullScope: true,
    scopes: new Set(["agents:read", "telemetry:read"]),
  };
  const position = { latitude: 1, longitude: 2 };
  const outline = { apId: "a", onboard: true, accessPointType: null, ...position, interval: null, site: null };

  it("reads the stores once in two seconds and never returns an overview older than five", async () => {
    const clock = { ms: 0 };
    let reads = 0;
    let delay = Promise.resolve();
    const { json } = createOverview(
      {
        async outlines() {
          reads++;
          await delay;
          return [outline];
        },
        names: async () => ["a"],
      },
      { lastSeen: async () => ({ times: new Map([["a", -1]]), isComplete: true }) },
      { latest: async () => new Map([["a", { load: 1, quality: null, users: 0 }]]) },
      () => clock.ms,
    );
    const at = async () => Date.parse((JSON.parse(await json(actor)) as Overview).at);
    expect((JSON.parse(await json(actor)) as { access_points: AccessPointState[] }).access_points).toMatchObject([
      { ap_id: "a", online: true, load: 1, quality: null, users: 0 },
    ]);
    clock.ms = 1_999;
    expect([await at(), reads]).toEqual([0, 1]);
    clock.ms = 2_000;
    const slow = Promise.withResolvers<void>();
    delay = slow.promise;
    const first = at();
    // Other requests do not wait for it.
    expect([await at(), await at(), reads]).toEqual([0, 0, 2]);
    slow.resolve();
    expect([await first, await at()]).toEqual([2_000, 2_000]);

    clock.ms = 4_000;
    const slower = Promise.withResolvers<void>();
    delay = slower.promise;
    const overtaken = at();
    clock.ms = 6_000;
    delay = Promise.resolve();
    expect(await at()).toBe(6_000);
    slower.resolve();
    expect([await overtaken, await at(), reads]).toEqual([4_000, 6_000, 4]);

    delay = Promise.reject(new Unavailable("accounts database", new Error("outage")));
    for (clock.ms = 8_000; clock.ms < 12_000; clock.ms += 2_000) await expect(at()).rejects.toThrow(Unavailable);
    expect(reads).toBe(6);
    clock.ms = 10_999;
    expect(await at()).toBe(6_000);
    clock.ms = 11_000;
    await expect(at()).rejects.toThrow(Unavailable);
    await expect(at()).rejects.toThrow(Unavailable);
  });
});

describe("the cache of latest values", () => {
  const NOW = 1_000_000;
  const latestOf = (maxAgents = 100) => {
    const clock = { ms: NOW };
    return { clock, latest: new LatestCache({ spanMs: 1_000, maxAgents, now: () => clock.ms }) };
  };
  const sample = (apId: string, tsMs: number, metrics: Record<string, number>) => ({ apId, tsMs, metrics, texts: {} });

  it("returns the newest value of each metric for samples in any order", () => {
    const { latest } = latestOf();
    latest.add([sample("a", NOW - 5, { load: 1, users: 1 }), sample("b", NOW, { other: 1 })]);
    latest.add([sample("a", NOW - 1, { load: 2 }), sample("a", NOW - 9, { load: 3, quality: 3 })]);
    expect(latest.read()).toEqual({ apIds: ["a"], load: [2], quality: [3], users: [1] });
  });

  it("drops values that are too old", () => {
    const { latest, clock } = latestOf();
    latest.add([sample("a", NOW, { load: 1 }), sample("a", NOW + 500, { users: 2 }), sample("b", NOW, { load: 1 })]);
    clock.ms = NOW + 1_001;
    expect(latest.read()).toEqual({ apIds: ["a"], load: [null], quality: [null], users: [2] });
    clock.ms = NOW;
    expect(latest.read().apIds).toEqual(["a"]);
  });

  it("limits the number of agents and drops the least recently changed one", () => {
    const { latest } = latestOf(2);
    latest.add(["a", "b"].map((apId) => sample(apId, NOW, { load: 1 })));
    latest.add([sample("a", NOW + 1, { load: 2 }), sample("c", NOW, { load: 1 })]);
    expect(latest.read().apIds).toEqual(["a", "c"]);
  });
});
