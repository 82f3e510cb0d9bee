import { describe, expect, it } from "vitest";
import type { Json } from "../../support/protocols/otlp-protobuf.ts";
import { bearer, newAgent, newApp, uniqueName } from "../support.ts";
import { gzip, OTLP, post, postOtlp, storedOf } from "./intake-requests.ts";

const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
const nowNs = (secondsAgo = 5) => `${Date.now() - secondsAgo * 1_000}000000`;

const requestOf = (attributes: Json[], ...metrics: Json[]): Json => ({
  resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ metrics }] }],
});
const gauge = (name: string, asDouble: number, more: { [key: string]: Json } = {}): Json => ({
  name,
  gauge: { dataPoints: [{ asDouble, timeUnixNano: nowNs(), ...more }] },
});

describe.each(["json", "protobuf"] as const)("an OTLP request as %s", (encoding) => {
  it("is stored when it is acknowledged", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const resource = [attribute("service.name", "radio"), attribute("service.instance.id", agent.apId)];
    const histogram = {
      name: "delay",
      histogram: {
        dataPoints: [
          { timeUnixNano: nowNs(), count: "4", sum: 20, bucketCounts: ["0", "4", "0"], explicitBounds: [0, 10] },
        ],
      },
    };
    const band = [attribute("band", "5 GHz")];
    const body = requestOf(resource, gauge("clients", 3, { attributes: band }), histogram);
    const response = await postOtlp(body, app.token, encoding);
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Type")).toContain(encoding === "json" ? "json" : "protobuf");
    expect(await response.text()).toBe(encoding === "json" ? "{}" : "");
    expect(await storedOf(agent.apId, app.token)).toEqual({
      'clients{band="5 GHz",service.name="radio"}': [3],
      'delay.count{service.name="radio"}': [4],
      'delay.sum{service.name="radio"}': [20],
      'delay.p50{service.name="radio"}': [5],
      'delay.p90{service.name="radio"}': [9],
      'delay.p99{service.name="radio"}': [9.9],
    });
  });

  it("is named by its host if no agent has the name of its instance", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const resource = [attribute("service.instance.id", crypto.randomUUID()), attribute("host.name", agent.apId)];
    expect((await postOtlp(requestOf(resource, gauge("a", 1)), app.token, encoding)).status).toBe(200);
    expect(await storedOf(agent.apId, app.token)).toEqual({ a: [1] });
  });

  it("writes to the agent whose token it has", async () => {
    const { apId, token } = await newAgent();
    const resource = [attribute("service.instance.id", "x"), attribute("host.name", "y")];
    expect((await postOtlp(requestOf(resource, gauge("a", 1)), token, encoding)).status).toBe(200);
    expect(await storedOf(apId, token)).toEqual({ a: [1] });
  });
});

describe("an OTLP request", () => {
  it("has a partial success if data points were rejected", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const unknown = uniqueName();
    const ofHost = (host: string, metric: Json) => ({
      resource: { attributes: [attribute("host.name", host)] },
      scopeMetrics: [{ metrics: [metric] }],
    });
    const summary = { name: "s", summary: { dataPoints: [{ count: "1", sum: 1, timeUnixNano: "1000000" }] } };
    const resourceMetrics = [
      ofHost(agent.apId, gauge("a", 1)),
      ofHost(unknown, gauge("b", 1)),
      ofHost(agent.apId, summary),
    ];
    const response = await postOtlp({ resourceMetrics }, app.token);
    expect(response.status).toBe(200);
    const { partialSuccess } = (await response.json()) as {
      partialSuccess: { rejectedDataPoints: string; errorMessage: string };
    };
    // The summary is one data point with two values.
    expect(partialSuccess.rejectedDataPoints).toBe("2");
    expect(partialSuccess.errorMessage).toContain(`${unknown} is not an agent`);
    expect(await storedOf(agent.apId, app.token)).toEqual({ a: [1] });
  });

  it("may be compressed with gzip", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const body = JSON.stringify(requestOf([attribute("host.name", agent.apId)], gauge("a", 1)));
    const headers = { "Content-Type": "application/json", "Content-Encoding": "gzip", ...bearer(app.token) };
    expect((await post(OTLP, await gzip(body), headers)).status).toBe(200);
    expect(await storedOf(agent.apId, app.token)).toEqual({ a: [1] });
  });

  it("is rejected as a whole if it is broken, with a status in its encoding", async () => {
    const { token } = await newApp({ write: true });
    const json = { "Content-Type": "application/json", ...bearer(token) };
    const protobuf = { "Content-Type": "application/x-protobuf", ...bearer(token) };
    const broken = await post(OTLP, "{", json);
    expect([broken.status, await broken.json()]).toEqual([400, { message: "Invalid OTLP: the body is not JSON" }]);
    const truncated = await post(OTLP, Uint8Array.of(0x0a, 0x05, 0x0a), protobuf);
    expect([truncated.status, truncated.headers.get("Content-Type")]).toEqual([400, "application/x-protobuf"]);
    expect((await post(OTLP, "{}", { ...json, "Content-Type": "text/plain" })).status).toBe(415);
    expect((await post(OTLP, "{}", { ...json, "Content-Encoding": "br" })).status).toBe(415);
    expect((await post(OTLP, "{}", { ...json, "Content-Encoding": "gzip" })).status).toBe(400);
    const half = (await gzip("{}")).slice(0, 12);
    expect((await post(OTLP, half, { ...json, "Content-Encoding": "gzip" })).status).toBe(400);
    const bomb = await gzip(new Uint8Array(16 * 1024 * 1024));
    expect((await post(OTLP, bomb, { ...json, "Content-Encoding": "gzip" })).status).toBe(413);
    expect((await postOtlp({}, token)).status).toBe(200);
  });
});
