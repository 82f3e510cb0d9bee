import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { version } from "../../../package.json";
import { parseEnv } from "../../../src/env.ts";
import { histogram, series } from "../../../src/monitoring/catalog.ts";
import { toText } from "../../../src/monitoring/exposition.ts";
import type { Ledger } from "../../../src/monitoring/ledger.ts";
import { MetricRecorder } from "../../../src/monitoring/recorder.ts";
import { createPlacement } from "../../../src/telemetry/shard/placement.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import {
  adminToken,
  appWith,
  bearer,
  logIn,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  settings,
  signedUp,
  uniqueName,
} from "../support.ts";
import { fullShard } from "../telemetry/journal-support.ts";
import { readExposition, type Scraped } from "./exposition.ts";

const TOKEN = settings.METRICS_TOKEN ?? "";

const scrape = async (): Promise<Scraped> => {
  const response = await request("/metrics", { headers: bearer(TOKEN) });
  expect(response.status).toBe(200);
  return readExposition(await response.text());
};
/** Returns the increase of metrics during an event. */
const growth = async (names: string[], event: () => Promise<unknown>): Promise<number[]> => {
  const before = await scrape();
  await event();
  const after = await scrape();
  return names.map((name) => (after.values.get(name) ?? 0) - (before.values.get(name) ?? 0));
};

describe("GET /metrics", () => {
  it("returns all metrics in the Prometheus text format", async () => {
    const response = await request("/metrics", { headers: bearer(await adminToken()) });
    expect(response.headers.get("Content-Type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const { types, values } = readExposition(await response.text());
    expect(Object.fromEntries(types)).toMatchObject({
      controller_build_info: "gauge",
      controller_up: "gauge",
      controller_requests_total: "counter",
      controller_request_seconds: "histogram",
      controller_errors_total: "counter",
      controller_logins_total: "counter",
      controller_ingest_samples_total: "counter",
      controller_ingest_batches_total: "counter",
      controller_ingest_waiting_samples: "gauge",
      controller_outbox_messages: "gauge",
      controller_outbox_oldest_seconds: "gauge",
      controller_jobs: "gauge",
      controller_job_sockets: "gauge",
    });
    expect(values.get(`controller_build_info{version="${version}"}`)).toBe(1);
    for (const component of ["libsql", "clickhouse", "broker", "ledger"])
      expect(values.get(`controller_up{part="${component}"}`), component).toBe(1);
    expect(values.get('controller_ingest_waiting_samples{shard="0"}')).toBe(0);
    expect([...values.keys()].filter((key) => key.startsWith("controller_jobs{")).length).toBe(6);
  });

  it("accepts the scraper token, which allows nothing else", async () => {
    expect((await request("/metrics", { headers: bearer(TOKEN) })).status).toBe(200);
    expect((await request("/metrics", { headers: bearer(`${TOKEN}x`) })).status).toBe(401);
    for (const other of [settings.SETUP_TOKEN, settings.ENROLMENT_TOKEN])
      expect((await request("/metrics", { headers: bearer(other ?? "") })).status).toBe(403);
    for (const path of ["/api/v1/users/me", "/api/v1/audit/", "/api/v1/jobs/", "/api/v1/agents/"])
      expect((await request(path, { headers: bearer(TOKEN) })).status).toBe(403);
    const closed = appWith({ METRICS_TOKEN: "" });
    expect((await closed.request("/metrics", { headers: bearer(TOKEN) })).status).toBe(401);
  });
});

/** Waits until the journals of all shards are empty. */
const allWritten = () =>
  vi.waitFor(
    async () => {
      const waiting = await createShardClient(env.AGENT_SHARD, createPlacement(parseEnv(env))).waiting();
      expect([...waiting.values()]).toEqual([0, 0, 0, 0]);
    },
    { timeout: 15_000, interval: 100 },
  );

describe("the service metrics", () => {
  it("count and time requests by operation and status class, never by path", async () => {
    const { username, token } = await signedUp();
    const me = 'controller_requests_total{operation="users.me",status="2xx"}';
    const rejected = 'controller_requests_total{operation="users.me",status="4xx"}';
    const timed = 'controller_request_seconds_count{operation="users.me"}';
    const unknown = 'controller_requests_total{operation="none",status="4xx"}';
    const names = [me, rejected, timed, unknown];
    const event = async () => {
      for (let i = 0; i < 3; i++) await send("GET", "/api/v1/users/me", undefined, token);
      await send("GET", "/api/v1/users/me");
      await send("GET", `/api/v1/users/${encodeURIComponent(username)}`, undefined, token);
      await send("GET", `/${username}`);
    };
    expect(await growth(names, event)).toEqual([3, 1, 4, 1]);
    const text = await (await request("/metrics", { headers: bearer(TOKEN) })).text();
    expect(text).not.toContain(username);
  });

  it("count requests that failed with 5xx", async () => {
    const names = ["bug", "unavailable"].map((kind) => `controller_errors_total{kind="${kind}"}`);
    const app = appWith({ LIBSQL_URL: "http://127.0.0.1:9" });
    expect(await growth(names, async () => await app.request("/readyz"))).toEqual([0, 1]);
  });

  it("count accepted, failed and limited logins", async () => {
    const { apId } = await newAgent();
    const names = ["accepted", "failed", "limited"].map(
      (outcome) => `controller_logins_total{login_type="agent",outcome="${outcome}"}`,
    );
    const event = async () => {
      await logIn(apId, PASSWORD, "agent");
      for (let i = 0; i < 11; i++) await logIn(apId, "wrong", "agent", "", "192.0.2.103");
    };
    expect(await growth(names, event)).toEqual([1, 10, 1]);
  });

  it("count samples and batches, and time each report", async () => {
    const { apId, token } = await newAgent();
    const bridge = await newApp({ broker: true });
    const names = [
      'controller_ingest_samples_total{outcome="committed"}',
      "controller_ingest_batches_total",
      'controller_ingest_lag_seconds_count{via="http"}',
      'controller_ingest_lag_seconds_count{via="mqtt"}',
      'controller_ingest_lag_seconds_bucket{via="mqtt",le="2.5"}',
      'controller_ingest_lag_seconds_bucket{via="mqtt",le="10"}',
    ];
    const event = async () => {
      await send("POST", "/api/v1/agent_update/update", { samples: samples(3) }, token);
      const messages = [
        { ap_id: apId, received_at: Date.now() - 5_000, report: { x: 1 } },
        { ap_id: uniqueName(), received_at: Date.now(), report: { x: 1 } },
      ];
      await send("POST", "/api/v1/bridge/data", { messages }, bridge.token);
      await allWritten();
    };
    // Other tests may have left samples in the journals.
    await allWritten();
    const [samplesWritten, batches, ...reports] = await growth(names, event);
    expect([samplesWritten, ...reports]).toEqual([4, 1, 1, 0, 1]);
    expect(batches).toBeGreaterThan(0);
  });

  it("count messages of the bridge: accepted, or rejected by the service or the bridge", async () => {
    const { apId } = await newAgent();
    const bridge = await newApp({ broker: true });
    const names = ["accepted", "rejected"].map((outcome) => `controller_bridge_messages_total{outcome="${outcome}"}`);
    const origin = { ap_id: apId, received_at: Date.now() };
    const event = async () => {
      const messages = [
        { ...origin, report: { x: 1 } },
        { ...origin, report: 7 },
        { ...origin, error: "not JSON" },
      ];
      const response = await send("POST", "/api/v1/bridge/data", { messages }, bridge.token);
      expect(await response.json()).toMatchObject({
        results: [{ accepted: 1 }, { error: expect.stringContaining("dictionary") }, { error: "not JSON" }],
      });
    };
    expect(await growth(names, event)).toEqual([1, 2]);
  });

  it("count samples that a full journal refuses", async () => {
    const shard = await fullShard();
    const refused = 'controller_ingest_samples_total{outcome="refused"}';
    const event = async () => {
      const sample = JSON.stringify({ apId: uniqueName(), tsMs: Date.now(), metrics: { x: 1 }, texts: {} });
      expect(await shard.append(sample)).toBe("unavailable");
      await shard.waiting();
    };
    expect(await growth([refused], event)).toEqual([1]);
  });

  it("count open sockets, and correct the count after sockets were lost", async () => {
    const { token } = await signedUp();
    const job = uniqueName();
    const open = async () => {
      const headers = { Upgrade: "websocket", ...bearer(token) };
      const { webSocket } = await request(`/api/v1/ws/${job}`, { headers });
      webSocket?.accept();
      return webSocket;
    };
    const sockets = async () => (await scrape()).values.get("controller_job_sockets") ?? 0;
    const before = await sockets();
    const first = await open();
    await open();
    await expect.poll(sockets).toBe(before + 2);
    first?.close(1000);
    await expect.poll(sockets).toBe(before + 1);
    const stream = env.JOB_STREAM.getByName(job);
    // Acts like a killed object: the ledger still counts sockets that no longer exist.
    await stream.close("cancelled");
    await expect.poll(sockets).toBe(before);
    const killed = uniqueName();
    await env.LEDGER.getByName("ledger").setSockets(killed, 7);
    expect(await sockets()).toBe(before + 7);
    await runInDurableObject(env.JOB_STREAM.getByName(killed), (object) => object.alarm());
    await expect.poll(sockets).toBe(before);
  });
});

describe("a scrape during an outage", () => {
  const scrapeWith = async (changes: Record<string, string>, ledger?: Partial<Ledger>): Promise<Scraped> => {
    const LEDGER = ledger && ({ getByName: () => ledger } as unknown as typeof env.LEDGER);
    const startedMs = Date.now();
    const app = appWith(changes, LEDGER && { LEDGER });
    const response = await app.request("/metrics", { headers: bearer(TOKEN) });
    expect(response.status).toBe(200);
    expect(Date.now() - startedMs).toBeLessThan(4_000);
    return readExposition(await response.text());
  };

  it.each([
    ["libsql", { LIBSQL_URL: "http://127.0.0.1:9" }, ["controller_outbox_messages", 'controller_jobs{state="queued"}']],
    ["clickhouse", { CLICKHOUSE_URL: "http://127.0.0.1:9" }, []],
    ["broker", { MQTT_URL: "ws://127.0.0.1:9" }, []],
  ])("of %s reports the component as down and omits its metrics", async (component, changes, missing) => {
    const { values } = await scrapeWith(changes);
    for (const each of ["libsql", "clickhouse", "broker", "ledger"])
      expect(values.get(`controller_up{part="${each}"}`), each).toBe(each === component ? 0 : 1);
    for (const name of missing) expect(values.has(name), name).toBe(false);
    expect(values.has("controller_ingest_batches_total")).toBe(true);
  });

  it("of the ledger omits its metrics, whether it fails or hangs", async () => {
    const failing = () => Promise.reject(new Error("broken"));
    const hanging = () => new Promise<never>(() => undefined);
    for (const call of [failing, hanging]) {
      const { values } = await scrapeWith({}, { add: call, read: call });
      expect(values.get('controller_up{part="ledger"}')).toBe(0);
      for (const name of ["controller_job_sockets", "controller_ingest_batches_total"])
        expect(values.has(name), name).toBe(false);
      expect(values.has("controller_outbox_messages")).toBe(true);
    }
  });
});

describe("the ledger", () => {
  const newLedger = () => env.LEDGER.getByName(uniqueName());

  it("sums increments of all isolates, and keeps them after an eviction", async () => {
    const ledger = newLedger();
    await ledger.add(new Map([["a", 1]]));
    await ledger.add(new Map([["a", 2]]));
    await ledger.add(new Map([["b", 0.5]]));
    await runInDurableObject(ledger, (_, state) => state.abort("eviction")).catch(() => undefined);
    const again = env.LEDGER.get(ledger.id);
    expect((await again.read()).sums).toEqual(
      new Map([
        ["a", 3],
        ["b", 0.5],
      ]),
    );
  });

  it("ignores new series above the limit", async () => {
    const ledger = newLedger();
    await ledger.add(new Map(Array.from({ length: 5_001 }, (_, i) => [`series ${i}`, 1])));
    await ledger.add(
      new Map([
        ["series 0", 1],
        ["another", 1],
      ]),
    );
    const { sums } = await ledger.read();
    expect([sums.size, sums.get("series 0"), sums.has("another")]).toEqual([5_000, 2, false]);
  });

  it("removes sockets that are older than any token", async () => {
    const ledger = newLedger();
    await ledger.setSockets("one", 2);
    await ledger.setSockets("other", 3);
    await ledger.setSockets("other", 1);
    expect((await ledger.read()).sockets).toBe(3);
    const nowMs = Date.now();
    vi.spyOn(Date, "now").mockImplementation(() => nowMs + 26 * 3_600_000);
    expect((await ledger.read()).sockets).toBe(0);
    vi.restoreAllMocks();
  });
});

describe("a recorder", () => {
  it("flushes at most every half minute, and keeps increments after a failed flush", async () => {
    const clock = { ms: 0 };
    const flushed: Map<string, number>[] = [];
    let isUnavailable = false;
    const add = async (increments: Map<string, number>) => {
      if (isUnavailable) throw new Error("unavailable");
      flushed.push(increments);
    };
    const recorder = new MetricRecorder({ ledger: { add }, now: () => clock.ms });
    const count = () => {
      recorder.add("a");
      recorder.flushIfDue();
    };
    count();
    count();
    expect(flushed).toEqual([new Map([["a", 1]])]);
    clock.ms = 30_000;
    isUnavailable = true;
    count();
    await Promise.resolve();
    isUnavailable = false;
    clock.ms = 60_000;
    count();
    expect(flushed[1]).toEqual(new Map([["a", 3]]));
    await recorder.flush();
    expect(flushed.length).toBe(2);
  });

  it("sorts observations into cumulative buckets", () => {
    const lag = histogram("controller_ingest_lag_seconds", "http");
    const sums = new Map<string, number>();
    const recorder = new MetricRecorder({ ledger: { add: async () => undefined }, now: Date.now });
    vi.spyOn(recorder, "add").mockImplementation((name, by = 1) => void sums.set(name, (sums.get(name) ?? 0) + by));
    for (const ms of [-3, 0, 5, 6, 400, 10_000, 99_999]) recorder.observe(lag, ms);
    sums.set("controller_of_an_earlier_version x", 1);
    sums.set(series("controller_outbox_messages"), 1e21);
    const { values } = readExposition(toText(sums));
    const of = (le: string) => values.get(`controller_ingest_lag_seconds_bucket{via="http",le="${le}"}`);
    expect(["0.005", "0.025", "0.1", "0.5", "2.5", "10", "+Inf"].map(of)).toEqual([3, 4, 4, 5, 5, 6, 7]);
    expect(values.get('controller_ingest_lag_seconds_sum{via="http"}')).toBeCloseTo(110.41);
    expect(values.get("controller_outbox_messages")).toBe(1e21);
    expect([...values.keys()].some((key) => key.includes("earlier"))).toBe(false);
  });
});

const samples = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ ts: Date.now() - i * 1_000, payload: { x: i } }));
