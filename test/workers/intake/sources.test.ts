import { describe, expect, it } from "vitest";
import { Receipts } from "../../../src/telemetry/shard/receipts.ts";
import { adminToken, bearer, newAgent, newApp, PASSWORD, send, signedUp, uniqueName } from "../support.ts";
import { killShard, sampleOf, shardObject } from "../telemetry/journal-support.ts";
import { get, post } from "../telemetry/requests.ts";
import { openWisp, postLines, postOtlp, postSeries, post as postTo } from "./intake-requests.ts";

interface Source {
  protocol: string;
  app: string | null;
  last_received: string;
}

async function sourcesOf(apId: string, token: string): Promise<Source[]> {
  const response = await get(`agent_multi_metric_data?agent=${apId}&metrics=load&sources=true`, token);
  expect(response.status).toBe(200);
  return ((await response.json()) as { sources: Source[] }).sources;
}

/** Returns the sources without their times. */
const namesOf = async (apId: string, token: string) =>
  (await sourcesOf(apId, token)).map(({ protocol, app }) => ({ protocol, app }));

async function deliver(apId: string, receivedMs = Date.now()): Promise<void> {
  const { token } = await newApp({ broker: true });
  const messages = [{ ap_id: apId, received_at: receivedMs, report: { load: 1 } }];
  const response = await send("POST", "/api/v1/bridge/data", { messages }, token);
  expect(await response.json()).toMatchObject({ results: [{ accepted: 1 }] });
}

const metrics = [{ name: "load", gauge: { dataPoints: [{ asDouble: 1 }] } }];
const otlpOf = (apId: string) => {
  const attributes = [{ key: "host.name", value: { stringValue: apId } }];
  return { resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ metrics }] }] };
};
const MONITORING = JSON.stringify({ type: "DeviceMonitoring", general: { uptime: 60 } });

/** Sends one value for an agent. Each resolves to a response without an error. */
const SENDERS: Record<string, (apId: string, token: string) => Promise<Response>> = {
  prometheus: (apId, token) =>
    postSeries([{ labels: { __name__: "load", instance: apId }, samples: [[1, Date.now()]] }], token),
  otlp: (apId, token) => postOtlp(otlpOf(apId), token),
  influx: (apId, token) => postLines(`radio,host=${apId} load=1`, token),
  openwisp: (apId, token) =>
    postTo(openWisp(apId), MONITORING, { "Content-Type": "application/json", ...bearer(token) }),
};

describe("the sources of an agent's samples", () => {
  it("are returned only on request", async () => {
    const { apId, token } = await newAgent();
    await post({ load: 1 }, token);
    const response = await get(`agent_multi_metric_data?agent=${apId}&metrics=load`, token);
    expect(await response.json()).not.toHaveProperty("sources");
    const flag = await get(`agent_multi_metric_data?agent=${apId}&metrics=load&sources=perhaps`, token);
    expect(flag.status).toBe(422);
  });

  it("are empty before the first report", async () => {
    const { apId, token } = await newAgent();
    expect(await sourcesOf(apId, token)).toEqual([]);
  });

  it("include HTTP, with the time of the last report", async () => {
    const { apId, token } = await newAgent();
    const beforeMs = Date.now();
    // The time of the sample is that of the agent's clock.
    await post({ ts: beforeMs - 3_600_000, payload: { load: 1 } }, token);
    const [source, ...others] = await sourcesOf(apId, token);
    expect([source, others]).toMatchObject([{ protocol: "http", app: null }, []]);
    expect(Date.parse(source?.last_received ?? "")).toBeGreaterThanOrEqual(beforeMs);
    expect(Date.parse(source?.last_received ?? "")).toBeLessThanOrEqual(Date.now());
  });

  it("include HTTP if a report has a configuration only", async () => {
    const { apId, token } = await newAgent();
    await post({ configuration: { interval: 5 } }, token);
    expect(await namesOf(apId, token)).toEqual([{ protocol: "http", app: null }]);
  });

  it("include MQTT, with the time at which the bridge received the report", async () => {
    const { apId, token } = await newAgent();
    const receivedMs = Date.now() - 60_000;
    await deliver(apId, receivedMs);
    expect(await sourcesOf(apId, token)).toEqual([
      { protocol: "mqtt", app: null, last_received: new Date(receivedMs).toISOString() },
    ]);
  });

  it("include the emulator for an emulated agent", async () => {
    const apId = `emu-lifi-${crypto.randomUUID().slice(0, 8)}-0001`;
    const agent = { ap_id: apId, password: PASSWORD, configuration: {} };
    expect((await send("POST", "/api/v1/agents/", agent, await adminToken())).status).toBe(200);
    await deliver(apId);
    expect(await namesOf(apId, await adminToken())).toEqual([{ protocol: "emulator", app: null }]);
  });

  it.each(Object.entries(SENDERS))("include the protocol %s, with the app if one sends", async (protocol, sendFor) => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    expect((await sendFor(agent.apId, agent.token)).ok).toBe(true);
    expect(await namesOf(agent.apId, agent.token)).toEqual([{ protocol, app: null }]);
    expect((await sendFor(agent.apId, app.token)).ok).toBe(true);
    expect(await namesOf(agent.apId, agent.token)).toHaveLength(2);
    expect(await namesOf(agent.apId, agent.token)).toContainEqual({ protocol, app: app.appName });
  });

  it("are those of each agent in one request of an app", async () => {
    const [one, two, app] = [await newAgent(), await newAgent(), await newApp({ write: true })];
    const [first, second] = [Date.now() - 2_000, Date.now() - 1_000];
    const lines = [one, two].flatMap(({ apId }) => [first, second].map((ms) => `radio,host=${apId} load=1 ${ms}`));
    expect((await postLines(lines.join("\n"), app.token)).status).toBe(204);
    for (const { apId, token } of [one, two])
      expect(await namesOf(apId, token)).toEqual([{ protocol: "influx", app: app.appName }]);
  });

  it("are visible to users who see the agent, and to no others", async () => {
    const site = uniqueName();
    const agent = await newAgent({}, { site });
    await post({ load: 1 }, agent.token);
    const viewer = await signedUp([{ role: "viewer", selector: `site=${site}` }]);
    expect(await namesOf(agent.apId, viewer.token)).toEqual([{ protocol: "http", app: null }]);
    const [stranger, otherAgent] = [
      await signedUp([{ role: "viewer", selector: `site=${uniqueName()}` }]),
      await newAgent({}, { site }),
    ];
    const path = `agent_multi_metric_data?agent=${agent.apId}&metrics=load&sources=true`;
    expect((await get(path, stranger.token)).status).toBe(404);
    expect((await get(path, otherAgent.token)).status).toBe(403);
  });

  it("are unknown after a restart until the next report", async () => {
    const { apId, token } = await newAgent();
    await post({ load: 1 }, token);
    await shardObject(apId).flush();
    await killShard(apId);
    expect(await sourcesOf(apId, token)).toEqual([]);
    await deliver(apId);
    expect(await namesOf(apId, token)).toEqual([{ protocol: "mqtt", app: null }]);
  });
});

describe("the receipts of a shard", () => {
  const sampleFrom = (apId: string, app: string, receivedMs: number) => ({
    ...sampleOf(apId, 0),
    ...{ protocol: "otlp" as const, app, receivedMs },
  });

  it("have the latest source first, and drop the oldest beyond 8 for each agent", () => {
    const receipts = new Receipts({ maxAgents: 2, now: () => 0 });
    const apps = Array.from({ length: 10 }, (_, i) => `app-${i}`);
    receipts.add(apps.map((app, i) => sampleFrom("a", app, i)));
    receipts.add([sampleFrom("a", "app-5", 20), sampleFrom("b", "app-1", 1)]);
    expect(receipts.sources("a").map(({ app }) => app)).toEqual(
      ["app-5", "app-9", "app-8", "app-7", "app-6", "app-4", "app-3", "app-2"], //
    );
    expect(receipts.sources("b")).toEqual([{ protocol: "otlp", app: "app-1", receivedMs: 1 }]);
    expect(receipts.sources("c")).toEqual([]);
  });

  it("keep the latest time of each source and of the agent", () => {
    const receipts = new Receipts({ maxAgents: 2, now: () => 0 });
    receipts.add([sampleFrom("a", "one", 5), sampleFrom("a", "one", 3), { ...sampleOf("a", 0), receivedMs: 9 }]);
    expect(receipts.sources("a")).toMatchObject([{ app: "one", receivedMs: 5 }]);
    expect(receipts.read(["a", "b"])).toEqual({ apIds: ["a"], receivedMs: [9] });
  });

  it("drop the agents that were first beyond their limit", () => {
    const receipts = new Receipts({ maxAgents: 2, now: () => 0 });
    receipts.add(["a", "b", "c"].map((apId) => sampleFrom(apId, "one", 1)));
    expect(receipts.sources("a")).toEqual([]);
    expect(receipts.read().apIds).toEqual(["b", "c"]);
  });
});
