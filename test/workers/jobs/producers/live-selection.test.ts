import { env } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import type { AgentFilter } from "../../../../src/accounts/agents/agent-conditions.ts";
import { createCurrentScope } from "../../../../src/accounts/login/account-scope.ts";
import { createUserStore } from "../../../../src/accounts/user-store.ts";
import { type AgentScope, ALL_AGENTS } from "../../../../src/auth/agent-scope.ts";
import type { Actor } from "../../../../src/auth/identity.ts";
import { parseEnv } from "../../../../src/env.ts";
import { createJobs, type JobsOptions } from "../../../../src/jobs/jobs.ts";
import { produceLiveSelection } from "../../../../src/jobs/producers/live-selection.ts";
import { createDatabase } from "../../../../src/storage/libsql.ts";
import type { SelectionNews } from "../../../../src/telemetry/shard/shard-client.ts";
import { adminToken, newAgent, newApp, send, signedUp, uniqueName } from "../../support.ts";
import { rowsOf, status, stream } from "../job-requests.ts";

interface Row {
  ap_id: string;
  time: string;
  field: string;
  value: number | string;
}

const requestLive = (query: string, token: string) =>
  send("POST", `/api/v1/agent_data/request_live_data?${query}`, undefined, token);
const putLabels = async (apId: string, labels: object) =>
  expect((await send("PUT", `/api/v1/agents/${apId}/labels`, labels, await adminToken())).status).toBe(200);
const report = async ({ token }: { token: string }, value: number) =>
  expect((await send("POST", "/api/v1/agent_update/update", { payload: { value, text: "x" } }, token)).status).toBe(
    200,
  );

/** Requests live data and connects a reader. */
async function follow(query: string, token: string) {
  const response = await requestLive(query, token);
  expect(response.status).toBe(200);
  const { job_number: job } = (await response.json()) as { job_number: string };
  const reader = await stream(job, token);
  // After the first step, the agents are followed.
  await reader.until((messages) => messages.some(({ type }) => type === "status"));
  const rows = () => rowsOf(reader.messages(), "agent_data") as unknown as Row[];
  return { job, reader, values: (apId: string) => rows().filter(({ ap_id }) => ap_id === apId), rows };
}

const within = { timeout: 10_000, interval: 50 };

describe("live data of a selector", () => {
  it("has the new rows of the selected agents, and follows their labels", async () => {
    const team = uniqueName();
    const [first, second, other] = await Promise.all([
      newAgent({}, { team }),
      newAgent({}, { team }),
      newAgent({}, { team: "other" }),
    ]);
    await report(first, 0);
    const { token } = await signedUp();
    const { job, reader, values, rows } = await follow(`selector=team=${team}&duration=60`, token);
    for (const agent of [first, second, other]) await report(agent, 1);
    await expect.poll(() => rows().length, within).toBe(4);
    expect(values(first.apId)).toEqual([
      { ap_id: first.apId, time: expect.any(String), field: "value", value: 1 },
      { ap_id: first.apId, time: expect.any(String), field: "text", value: "x" },
    ]);
    expect(values(second.apId)).toHaveLength(2);

    await putLabels(second.apId, { team: "other" });
    await putLabels(other.apId, { team });
    await scheduler.wait(5_500);
    for (const agent of [first, second, other]) await report(agent, 2);
    await expect.poll(() => values(first.apId).length, within).toBe(4);
    await expect.poll(() => values(other.apId).map(({ value }) => value), within).toEqual([2, "x"]);
    expect(values(second.apId)).toHaveLength(2);
    expect(await status(job, token)).toMatchObject({ kind: "agent_data", state: "running", rows_sent: 8 });
    reader.end();
    expect((await send("DELETE", `/api/v1/jobs/${job}`, undefined, token)).status).toBe(200);
  });

  it("ends after its duration", async () => {
    const { token } = await signedUp();
    const { job, reader } = await follow("selector=none&duration=1", token);
    await reader.until((messages) => messages.some(({ final }) => final));
    reader.end();
    expect(await status(job, token)).toMatchObject({ state: "done", rows_sent: 0 });
  });

  it("is limited to the agents that the caller sees", async () => {
    const team = uniqueName();
    const [inside, outside] = await Promise.all([newAgent({}, { team }), newAgent({}, { team: "other" })]);
    const { token: app } = await newApp({ ap_ids: [inside.apId] });
    const { token: user } = await signedUp([{ role: "viewer", selector: `team=${team}` }]);
    const { token: stranger } = await signedUp([]);
    const followed = await Promise.all([app, user, stranger].map((token) => follow("duration=60", token)));
    for (const agent of [inside, outside]) await report(agent, 1);
    const [ofApp, ofUser, ofStranger] = followed.map(({ rows }) => () => [
      ...new Set(rows().map(({ ap_id }) => ap_id)),
    ]);
    await expect.poll(() => ofApp?.(), within).toEqual([inside.apId]);
    await expect.poll(() => ofUser?.(), within).toEqual([inside.apId]);
    expect(ofStranger?.()).toEqual([]);
    await Promise.all(
      followed.map(async ({ job, reader }) => {
        reader.end();
        expect((await send("DELETE", `/api/v1/jobs/${job}`, undefined, await adminToken())).status).toBe(200);
      }),
    );
  });

  it.each(["duration=0", "duration=3601", "duration=x", "selector=a=", "selector=@none"])(
    "rejects %s with 422",
    async (query) => {
      expect((await requestLive(query, await adminToken())).status).toBe(422);
    },
  );

  it("rejects a selector of more than 500 agents with 422", async () => {
    const names = (count: number) => Array.from({ length: count }, (_, i) => `agent-${i}`);
    const started: unknown[] = [];
    const request = (count: number) =>
      createJobs({
        agents: { names: async () => names(count) },
        jobStore: { insert: async () => {} },
        streams: { start: async (_: string, input: unknown) => void started.push(input) },
      } as unknown as JobsOptions).requestLiveData(
        {
          kind: "admin",
          id: "id",
          name: "name",
          scopes: new Set(["agents:read", "telemetry:read"]),
        } as unknown as Actor,
        { duration: 1 },
        [],
      );
    await expect(request(501)).rejects.toMatchObject({ place: "query", items: [{ loc: ["selector"] }] });
    expect(await request(500)).toMatchObject({ status: "queued" });
    expect(started).toMatchObject([{ kind: "live_data", account: { kind: "user", id: "id", name: "name" } }]);
  });
});

describe("the producer of live data", () => {
  const account = { kind: "user", id: "id", name: "name" } as const;
  const place = { epoch: "e", seq: 1 };
  const sample = (apId: string) => ({ apId, tsMs: 0, metrics: { m: 1 }, texts: {} });

  /** Returns a producer whose clock moves by the time that it sleeps. */
  function producerOf(pages: Partial<SelectionNews>[], scopes: (AgentScope | undefined)[] = [ALL_AGENTS]) {
    const clock = { ms: 0 };
    const calls: { apIds: readonly string[]; places: unknown; atMs: number }[] = [];
    const filters: AgentFilter[] = [];
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((work: () => void, ms = 0) => {
      clock.ms += ms;
      queueMicrotask(work);
      return 0;
    }) as unknown as typeof setTimeout);
    const producer = produceLiveSelection({
      agents: {
        names: async (filter) => {
          filters.push(filter);
          return Array.from({ length: 501 }, (_, i) => `a-${i}`);
        },
      },
      scopeOf: async () => (scopes.length > 1 ? scopes.shift() : scopes[0]),
      shards: {
        newsOfMany: async (apIds, places) => {
          calls.push({ apIds, places: Object.fromEntries(places), atMs: clock.ms });
          return { places: new Map([[3, place]]), samples: [], hasMore: false, ...pages.shift() };
        },
      },
      request: { account, selector: [], toMs: 60_000 },
      now: () => clock.ms,
    });
    return { producer, calls, filters, clock };
  }

  it("polls once a second, at once if there is more, and at most 20 s without rows", async () => {
    const { producer, calls } = producerOf([{}, { samples: [sample("a")], hasMore: true }, { samples: [sample("b")] }]);
    try {
      const first = await producer.next(undefined);
      expect(first).toEqual({ rows: [], cursor: { places: { 3: place } }, isLast: false });
      const second = await producer.next(structuredClone(first.cursor));
      expect(second.rows.map((row) => JSON.parse(row))).toEqual([
        { ap_id: "a", time: "1970-01-01T00:00:00.000Z", field: "m", value: 1 },
      ]);
      expect((await producer.next(second.cursor)).rows).toHaveLength(1);
      expect((await producer.next(second.cursor)).rows).toEqual([]);
      expect(calls.map(({ atMs }) => atMs).slice(0, 4)).toEqual([0, 1_000, 1_000, 2_000]);
      expect(calls.map(({ places }) => places).slice(0, 2)).toEqual([{}, { 3: place }]);
      expect(calls.at(-1)?.atMs).toBeLessThanOrEqual(22_000);
      let step = second;
      while (!step.isLast) step = await producer.next(step.cursor);
      expect(calls.at(-1)?.atMs).toBe(60_000);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it("reads the scope of the account again within 5 s, and follows at most 500 agents", async () => {
    const limited = { selectors: [[{ key: "a", negated: false }]] };
    const { producer, calls, filters } = producerOf([], [ALL_AGENTS, limited, undefined]);
    try {
      const { cursor } = await producer.next(undefined);
      await producer.next(cursor);
      const changes = calls.filter(({ apIds }, i) => apIds !== calls[i - 1]?.apIds).slice(0, 3);
      expect(changes.map(({ apIds, atMs }) => [apIds.length, atMs])).toEqual([
        [500, 0],
        [500, 4_000],
        [0, 8_000],
      ]);
      expect(filters.map(({ scope }) => scope)).toEqual([ALL_AGENTS, limited]);
    } finally {
      vi.restoreAllMocks();
    }
  });
});

describe("the current scope of an account", () => {
  it("follows its grants, and is undefined for a later account of the same name", async () => {
    const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
    const scopeOf = createCurrentScope(database);
    const admin = await adminToken();
    const { username } = await signedUp([{ role: "viewer", selector: "site=a" }]);
    const { id = "" } = (await createUserStore(database).find(username)) ?? {};
    const account = { kind: "user", id, name: username } as const;
    const ofSite = (site: string) => ({
      selectors: [[{ key: "site", values: [site], negated: false }]],
      ownerId: id,
    });
    expect(await scopeOf(account)).toEqual(ofSite("a"));
    const body = { grants: [{ role: "operator", selector: "site=b" }] };
    expect((await send("PUT", `/api/v1/users/${username}/grants`, body, admin)).status).toBe(200);
    expect(await scopeOf(account)).toEqual(ofSite("b"));
    expect(await scopeOf({ ...account, id: "another" })).toBeUndefined();
    expect(await scopeOf({ ...account, kind: "app" })).toBeUndefined();
  });
});
