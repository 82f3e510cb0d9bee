import { describe, expect, it } from "vitest";
import { newAgent, signedUp, uniqueName } from "../support.ts";
import { get, post } from "../telemetry/requests.ts";

const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 600_000;
const PERIOD = `&start_time=${startMs}&end_time=${startMs + 60_000}`;
const timeOf = (i: number): string => new Date(startMs + i * 1_000).toISOString();

async function newReporter(labels: Record<string, string> = {}) {
  const agent = await newAgent({}, labels);
  const samples = [0, 1].map((i) => ({ ts: startMs + i * 1_000, payload: { load: i + 0.5, 'tx{a="1",b="2"}': i } }));
  expect((await post({ samples }, agent.token)).status).toBe(200);
  return agent;
}

describe("a download", () => {
  it("of an agent as CSV has every acknowledged value, in order", async () => {
    const { apId } = await newReporter();
    const response = await get(`download?agent=${apId}${PERIOD}`, (await signedUp()).token);
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Type")).toBe("text/csv; charset=utf-8");
    const day = new Date(startMs).toISOString().slice(0, 10);
    expect(response.headers.get("Content-Disposition")).toBe(`attachment; filename="${apId}-${day}.csv"`);
    const labelled = '"tx{a=""1"",b=""2""}"';
    expect((await response.text()).split("\n")).toEqual([
      '"time","agent","metric","value"',
      `"${timeOf(0)}","${apId}","load",0.5`,
      `"${timeOf(1)}","${apId}","load",1.5`,
      `"${timeOf(0)}","${apId}",${labelled},0`,
      `"${timeOf(1)}","${apId}",${labelled},1`,
      "",
    ]);
  });

  it("as CSV escapes names that a spreadsheet would execute", async () => {
    const [{ apId, token: own }, { token }] = [await newAgent(), await signedUp()];
    expect((await post({ ts: startMs, payload: { "=1+1": 1, "@a": 2, "a=b": 3, "-x": 4, load: 5 } }, own)).status).toBe(
      200,
    );
    const names = async (format: string) => {
      const response = await get(`download?agent=${apId}&format=${format}${PERIOD}`, token);
      return Array.from((await response.text()).matchAll(/"([^",:]*)"(?:,|,"value":)\d/g), ([, name]) => name);
    };
    expect(await names("csv")).toEqual(["'-x", "'=1+1", "'@a", "a=b", "load"]);
    expect(await names("ndjson")).toEqual(["-x", "=1+1", "@a", "a=b", "load"]);
    const chosen = await get(`download?agent=${apId}&metrics=${encodeURIComponent("=1+1")}${PERIOD}`, token);
    expect(await chosen.text()).toContain(`"'=1+1",1\n`);
  });

  it("of a selection as NDJSON has the chosen metrics of the agents that the caller sees", async () => {
    const [team, site] = [uniqueName(), uniqueName()];
    const seen = await newReporter({ team, site });
    await newReporter({ team });
    const { token } = await signedUp([{ role: "viewer", selector: `site=${site}` }]);
    const response = await get(`download?selector=team=${team}&metrics=none,load&format=ndjson${PERIOD}`, token);
    const lines = (await response.text()).split("\n").filter((line) => line !== "");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
      [0, 1].map((i) => ({ time: timeOf(i), agent: seen.apId, metric: "load", value: i + 0.5 })),
    );
  });

  it("takes metrics with labels", async () => {
    const { apId } = await newReporter();
    const metric = encodeURIComponent('tx{a="1",b="2"}');
    const response = await get(
      `download?agent=${apId}&metrics=none,${metric}&format=ndjson${PERIOD}`,
      (await signedUp()).token,
    );
    expect((await response.text()).split("\n").filter((line) => line !== "")).toHaveLength(2);
  });

  it.each([
    ["parquet", "application/vnd.apache.parquet", [0x50, 0x41, 0x52, 0x31]],
    // A stream begins with a continuation marker.
    ["arrow", "application/vnd.apache.arrow.stream", [0xff, 0xff, 0xff, 0xff]],
  ])("as %s is such a file", async (format, type, start) => {
    const { apId } = await newReporter();
    const response = await get(`download?agent=${apId}&format=${format}${PERIOD}`, (await signedUp()).token);
    expect(response.headers.get("Content-Type")).toBe(type);
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect([...bytes.subarray(0, 4)]).toEqual(start);
    if (format === "parquet") expect([...bytes.subarray(-4)]).toEqual(start);
  });

  it("of no agent has no rows", async () => {
    const response = await get(`download?selector=team=${uniqueName()}`, (await signedUp()).token);
    expect([response.status, (await response.text()).split("\n").filter((line) => line !== "").length <= 1]).toEqual([
      200,
      true,
    ]);
  });

  it.each([
    "format=xlsx",
    "agent=a&selector=b",
    "start_time=2000&end_time=1000",
    "start_time=0&end_time=40000000",
    "metrics=",
  ])("with %s is rejected with 422", async (query) => {
    expect((await get(`download?${query}`, (await signedUp()).token)).status).toBe(422);
  });
});
