import { describe, expect, it } from "vitest";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import { writeRequest } from "../../support/protocols/remote-write.ts";
import { adminToken, bearer, newAgent, newApp, send } from "../support.ts";
import { basic, PROMETHEUS, post, postBlock, postSeries, storedOf } from "./intake-requests.ts";

const secondsAgoMs = (seconds: number) => Date.now() - seconds * 1_000;

describe("a remote write request", () => {
  it("is stored when it is acknowledged, with labels in the name of the metric", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const tsMs = secondsAgoMs(20);
    const labels = { instance: agent.apId, job: "node", mode: 'a "b"' };
    const response = await postSeries(
      [
        {
          labels: { __name__: "cpu", ...labels },
          samples: [
            [1.5, tsMs],
            [2.5, tsMs + 1_000],
          ],
        },
        { labels: { __name__: "load1", instance: agent.apId }, samples: [[7, tsMs]] },
      ],
      app.token,
    );
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(await storedOf(agent.apId, app.token)).toEqual({
      'cpu{job="node",mode="a \\"b\\""}': [1.5, 2.5],
      load1: [7],
    });
  });

  it("is stored once if it is sent again", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const series = [
      { labels: { __name__: "up", instance: agent.apId }, samples: [[1, secondsAgoMs(5)] as [number, number]] },
    ];
    for (let i = 0; i < 3; i += 1) expect((await postSeries(series, app.token)).status).toBe(204);
    expect(await storedOf(agent.apId, app.token)).toEqual({ up: [1] });
  });

  it("stores the values of one time from several requests, as the shards of a sender send them", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const tsMs = secondsAgoMs(5);
    for (const name of ["a", "b", "c"]) {
      await postSeries([{ labels: { __name__: name, instance: agent.apId }, samples: [[1, tsMs]] }], app.token);
    }
    expect(await storedOf(agent.apId, app.token)).toEqual({ a: [1], b: [1], c: [1] });
  });

  it("names what it rejects with 400 and stores all other samples", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const tsMs = secondsAgoMs(5);
    const instance = agent.apId;
    const response = await postSeries(
      [
        { labels: { __name__: "up", instance }, samples: [[1, tsMs]] },
        { labels: { __name__: "up", instance: "unknown-ap" }, samples: [[1, tsMs]] },
        { labels: { __name__: "homeless" }, samples: [[1, tsMs]] },
        { labels: { __name__: "old", instance }, samples: [[1, 1_000]] },
        { labels: { __name__: "early", instance }, samples: [[1, Date.now() + 3_600_000]] },
        { labels: { __name__: "infinite", instance }, samples: [[Infinity, tsMs]] },
        { labels: { __name__: "long", instance, job: "x".repeat(300) }, samples: [[1, tsMs]] },
      ],
      app.token,
    );
    expect(response.status).toBe(400);
    const { detail } = (await response.json()) as { detail: string };
    expect(detail).toContain("unknown-ap is not an agent");
    expect(detail).toContain("homeless has no label instance that names its agent");
    expect(detail).toMatch(/old is more than \d+ days old/);
    expect(detail).toContain("early lies more than 5 minutes in the future");
    expect(detail).toContain("infinite is not a finite number");
    expect(detail).toContain("has a name of more than 256 characters with its labels");
    expect(await storedOf(agent.apId, app.token)).toEqual({ up: [1] });
  });

  it("skips stale markers", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const samples: [number, number][] = [[Number.NaN, secondsAgoMs(5)]];
    const response = await postSeries([{ labels: { __name__: "up", instance: agent.apId }, samples }], app.token);
    expect(response.status).toBe(204);
    expect(await storedOf(agent.apId, app.token)).toEqual({});
  });

  it("of version 2.0 is not supported, with 415", async () => {
    const { token } = await newApp({ write: true });
    const type = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    expect((await postSeries([], token, { "Content-Type": type })).status).toBe(415);
  });

  it("writes to the agent whose token it has, which keeps all labels", async () => {
    const { apId, token } = await newAgent();
    const labels = { __name__: "up", instance: "localhost:9100" };
    expect((await postSeries([{ labels, samples: [[1, secondsAgoMs(5)]] }], token)).status).toBe(204);
    expect(await storedOf(apId, token)).toEqual({ 'up{instance="localhost:9100"}': [1] });
  });

  it("may have the app's name and key, or the agent's name and password, instead of a token", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const body = (name: string) =>
      compressSnappy(
        writeRequest([{ labels: { __name__: name, instance: agent.apId }, samples: [[1, secondsAgoMs(5)]] }]),
      );
    const type = { "Content-Type": "application/x-protobuf" };
    const status = async (name: string, credentials: Record<string, string>) =>
      (await post(PROMETHEUS, body(name), { ...type, ...credentials })).status;
    expect(await status("a", basic(app.appName))).toBe(204);
    expect(await status("b", basic(app.appName))).toBe(204);
    expect(await status("c", basic(`agent/${agent.apId}`))).toBe(204);
    expect(await status("d", basic(app.appName, "wrong-password"))).toBe(401);
    expect(await status("e", { Authorization: "Basic ?" })).toBe(401);
    expect(await status("f", {})).toBe(401);
    expect(await storedOf(agent.apId, app.token)).toMatchObject({ a: [1], b: [1] });
  });

  it("is rejected after the app's key has changed", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const block = compressSnappy(writeRequest([{ labels: { __name__: "a", instance: agent.apId }, samples: [] }]));
    const headers = { "Content-Type": "application/x-protobuf", ...basic(app.appName) };
    expect((await post(PROMETHEUS, block, headers)).status).toBe(204);
    const path = `/api/v1/third_party_apps/${app.appName}`;
    expect((await send("PUT", path, { api_key: "another-key-1" }, await adminToken())).status).toBe(200);
    await expect
      .poll(async () => (await post(PROMETHEUS, block, headers)).status, { timeout: 10_000, interval: 500 })
      .toBe(401);
  });
});

describe("a broken remote write request", () => {
  it("is rejected as a whole with 400 or 413, stores nothing, and does not affect the next", async () => {
    const [agent, app] = [await newAgent(), await newApp({ write: true })];
    const valid = compressSnappy(
      writeRequest([{ labels: { __name__: "up", instance: agent.apId }, samples: [[1, secondsAgoMs(5)]] }]),
    );
    const broken: [Uint8Array<ArrayBuffer>, number][] = [
      [Uint8Array.of(), 400],
      [valid.slice(0, -1), 400],
      [valid.slice(1), 400],
      [compressSnappy(Uint8Array.of(0x0a, 0xff, 0x01)), 400],
      // Declares 4 GiB.
      [Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00), 413],
      // 400 KiB that become 9 MiB.
      [compressSnappy(new Uint8Array(9 * 1024 * 1024)), 413],
      // A million series without content.
      [compressSnappy(new Uint8Array(2_000_000).map((_, i) => (i % 2 === 0 ? 0x0a : 0))), 413],
    ];
    for (const [block, status] of broken) {
      expect((await postBlock(block, app.token)).status).toBe(status);
    }
    expect(await storedOf(agent.apId, app.token)).toEqual({});
    expect((await postBlock(valid, app.token)).status).toBe(204);
    expect(await storedOf(agent.apId, app.token)).toEqual({ up: [1] });
  });

  it("is too large with a body of more than 1 MiB", async () => {
    const { token } = await newApp({ write: true });
    const headers = { "Content-Type": "application/x-protobuf", ...bearer(token) };
    expect((await post(PROMETHEUS, new Uint8Array(1024 * 1024 + 1), headers)).status).toBe(413);
  });
});
