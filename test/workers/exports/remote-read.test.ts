import { describe, expect, it } from "vitest";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import { encodeRequest } from "../../support/protocols/remote-read.ts";
import { adminToken, newAgent, newApp, signedUp, testStore, uniqueName } from "../support.ts";
import { post } from "../telemetry/requests.ts";
import { equal, postRead, type ReadSeries, readSeries } from "./exports-requests.ts";

const HOUR_MS = 3_600_000;
const startMs = Math.floor(Date.now() / 1_000) * 1_000 - HOUR_MS;
const period = { startMs, endMs: startMs + HOUR_MS + 60_000 };

/** Waits until the agent is listed: the list may be two seconds old. */
async function waitForAgent(apId: string): Promise<void> {
  const info = async () => {
    const found = await readSeries(
      await adminToken(),
      [equal("__name__", "access_point_info"), equal("instance", apId)],
      period,
    );
    return found.length;
  };
  await expect.poll(info, { timeout: 10_000, interval: 200 }).toBe(1);
}

async function newReporter(values: number[], metric: string, labels: Record<string, string> = {}) {
  const agent = await newAgent({ access_point_type: "WiFi" }, labels);
  const samples = values.map((value, i) => ({ ts: startMs + i * 1_000, payload: { [metric]: value } }));
  expect((await post({ samples }, agent.token)).status).toBe(200);
  await waitForAgent(agent.apId);
  return agent;
}

const samplesOf = (values: number[]): ReadSeries["samples"] =>
  values.map((value, i) => ({ tsMs: startMs + i * 1_000, value }));

describe("remote read", () => {
  it.each(["chunks", "samples"] as const)("returns every acknowledged value at once, as %s", async (type) => {
    const metric = uniqueName().replaceAll("-", "_");
    const values = Array.from({ length: 300 }, (_, i) => Math.fround(i / 7) + i);
    const { apId } = await newReporter(values, metric);
    const found = await readSeries(await adminToken(), [equal("__name__", metric)], period, type);
    expect(found).toEqual([{ labels: { __name__: metric, instance: apId }, samples: samplesOf(values) }]);
  });

  it("combines what is stored with what is not stored yet", async () => {
    const metric = uniqueName().replaceAll("-", "_");
    const { apId, token } = await newReporter([1, 2], metric);
    const stored = async () => (await testStore().metrics(apId, startMs)).length;
    await expect.poll(stored, { timeout: 10_000, interval: 100 }).toBe(1);
    expect((await post({ samples: [{ ts: startMs + 2_000, payload: { [metric]: 3 } }] }, token)).status).toBe(200);
    const [found] = await readSeries(await adminToken(), [equal("__name__", metric)], period);
    expect(found?.samples).toEqual(samplesOf([1, 2, 3]));
  });

  it("returns only the samples of the period, both ends included", async () => {
    const metric = uniqueName().replaceAll("-", "_");
    await newReporter([1, 2, 3, 4], metric);
    const part = { startMs: startMs + 1_000, endMs: startMs + 2_000 };
    const [found] = await readSeries(await adminToken(), [equal("__name__", metric)], part);
    expect(found?.samples).toEqual(samplesOf([1, 2, 3, 4]).slice(1, 3));
  });

  it("escapes names, finds them in both forms, and shows labels of metrics", async () => {
    const metric = `a.${uniqueName().replaceAll("-", "")}`;
    const { apId } = await newReporter([1], `${metric}{cpu="0",host.name="x"}`);
    const escaped = `U__${metric.replace(".", "_2e_")}`;
    const labels = { cpu: "0", instance: apId };
    const admin = await adminToken();
    expect(await readSeries(admin, [equal("__name__", escaped), equal("cpu", "0")], period)).toEqual([
      { labels: { __name__: escaped, U__host_2e_name: "x", ...labels }, samples: samplesOf([1]) },
    ]);
    expect(await readSeries(admin, [equal("__name__", metric)], period)).toEqual([
      { labels: { __name__: metric, "host.name": "x", ...labels }, samples: samplesOf([1]) },
    ]);
    expect(await readSeries(admin, [equal("__name__", escaped), equal("cpu", "1")], period)).toEqual([]);
  });

  it("returns many metrics whose names are as long as names can be", async () => {
    const agent = await newAgent();
    const metric = uniqueName().replaceAll("-", "_");
    const names = Array.from({ length: 200 }, (_, i) =>
      `${metric}{x="${i}${"漢".repeat(300)}`.slice(0, 254).concat('"}'),
    );
    const payload = Object.fromEntries(names.map((name, i) => [name, i]));
    expect((await post({ samples: [{ ts: startMs, payload }] }, agent.token)).status).toBe(200);
    await waitForAgent(agent.apId);
    const found = await readSeries(await adminToken(), [equal("__name__", metric)], period);
    expect(found.map(({ samples }) => samples[0]?.value).toSorted((a = 0, b = 0) => a - b)).toEqual(
      names.map((_, i) => i),
    );
  });

  it("has a series with the labels of each agent", async () => {
    const { apId } = await newReporter([1], "load", { site: "uk/bristol" });
    const [info] = await readSeries(
      await adminToken(),
      [equal("__name__", "access_point_info"), equal("instance", apId)],
      period,
    );
    expect(info?.labels).toMatchObject({
      __name__: "access_point_info",
      instance: apId,
      site: "uk/bristol",
      technology: "WiFi",
    });
    expect(new Set(info?.samples.map(({ value }) => value))).toEqual(new Set([1]));
  });

  it("shows a caller the agents of its grants only", async () => {
    const metric = uniqueName().replaceAll("-", "_");
    const site = uniqueName();
    const seen = await newReporter([1], metric, { site });
    const hidden = await newReporter([2], metric, { site: `${site}-other` });
    const { token } = await signedUp([{ role: "viewer", selector: `site=${site}` }]);
    const limited = await newApp({ ap_ids: [hidden.apId] });
    const agentsOf = async (caller: string) =>
      (await readSeries(caller, [equal("__name__", metric)], period)).map(({ labels }) => labels.instance);
    expect(await agentsOf(token)).toEqual([seen.apId]);
    expect(await agentsOf(limited.token)).toEqual([hidden.apId]);
    expect((await agentsOf(await adminToken())).toSorted()).toEqual([seen.apId, hidden.apId].toSorted());
    expect(
      await readSeries(token, [equal("__name__", "access_point_info"), equal("instance", hidden.apId)], period),
    ).toEqual([]);
  });

  it.each([
    ["is empty", ""],
    ["is no snappy block", "hello, world"],
    ["declares more than it has", "\u007f\u007fabc"],
    ["is no protobuf", compressSnappy(new Uint8Array([0x0f, 1, 2, 3]))],
    [
      "has an expression that is not valid",
      encodeRequest([{ ...period, matchers: [{ type: "=~", name: "a", value: "(" }], hints: undefined }], []),
    ],
    [
      "has an expression with an unknown class of characters",
      encodeRequest([{ ...period, matchers: [{ type: "=~", name: "a", value: "\\pX" }], hints: undefined }], []),
    ],
    ["accepts no known type", encodeRequest([], [9])],
  ])("rejects a request that %s with 400", async (_, body) => {
    expect((await postRead(await adminToken(), body)).status).toBe(400);
  });

  it("rejects a request that is too large with 413", async () => {
    expect((await postRead(await adminToken(), new Uint8Array(1024 * 1024 + 1))).status).toBe(413);
  });
});
