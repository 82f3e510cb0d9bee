import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { createPlacement } from "../../../src/telemetry/shard/placement.ts";
import { RecentMinutes } from "../../../src/telemetry/shard/recent-minutes.ts";
import { createShardClient } from "../../../src/telemetry/shard/shard-client.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe("recent minutes", () => {
  it("are complete only for minutes that no earlier instance of the object can have seen", () => {
    const clock = { ms: 1_000 * HOUR_MS + 30_000 };
    const recent = new RecentMinutes({ minutes: 3, maxAheadMs: 5 * MINUTE_MS, maxBytes: 1e6, now: () => clock.ms });
    const sampleAt = (tsMs: number): AgentSample => ({ apId: "a", tsMs, metrics: { m: 1 }, texts: {} });
    const minuteOf = (i: number) => 1_000 * HOUR_MS + i * MINUTE_MS;
    recent.add([sampleAt(clock.ms), sampleAt(minuteOf(5))]);
    expect(recent.read(["m"], 0)).toEqual({ completeFromMs: minuteOf(6), apIds: [], sums: [] });
    recent.add([sampleAt(minuteOf(6)), sampleAt(minuteOf(6) + 1), sampleAt(minuteOf(7))]);
    const [six, seven] = recent.read(["m", "none"], 0).sums;
    expect(six).toMatchObject({ minuteMs: minuteOf(6), counts: new Float64Array([2]) });
    expect(seven).toMatchObject({ minuteMs: minuteOf(7) });
    // The outcome of a commit is unknown.
    recent.forget([sampleAt(minuteOf(6))]);
    expect(recent.read(["m"], 0)).toMatchObject({ completeFromMs: minuteOf(7), sums: [{ minuteMs: minuteOf(7) }] });
    clock.ms = minuteOf(20);
    expect(recent.read(["m"], 0)).toEqual({ completeFromMs: minuteOf(17), apIds: [], sums: [] });
    expect(recent.bytes).toBe(0);
  });

  it("are dropped beyond the memory limit", () => {
    const clock = { ms: 1_000 * HOUR_MS };
    const recent = new RecentMinutes({ minutes: 3, maxAheadMs: 0, maxBytes: 10_000, now: () => clock.ms });
    clock.ms += 2 * MINUTE_MS;
    for (let i = 0; i < 1_000; i++) {
      recent.add([{ apId: `agent-${i}`, tsMs: clock.ms, metrics: { m: 1 }, texts: {} }]);
      expect(recent.bytes).toBeLessThanOrEqual(10_000);
    }
    expect(recent.read(["m"], 0)).toEqual({ completeFromMs: clock.ms + MINUTE_MS, apIds: [], sums: [] });
  });

  it("are not used if a shard does not respond", async () => {
    const { AGENT_SHARD: all } = env;
    const get = (id: DurableObjectId) =>
      id.name === "shard-1" ? { recentMinutes: () => Promise.reject(new Error("broken")) } : all.get(id);
    const broken = { idFromName: all.idFromName.bind(all), get } as unknown as typeof all;
    const twoShards = createPlacement({ AGENT_SHARDS: 2, CLICKHOUSE_SHARDS: 1 });
    expect(await createShardClient(broken, twoShards).recentMinutes(["m"], 0)).toBeUndefined();
    const [first, ...others] = (await createShardClient(all, twoShards).recentMinutes(["m"], 0)) ?? [];
    expect(first?.completeFromMs).toBeGreaterThan(0);
    expect(others).toHaveLength(1);
  });
});
