import { describe, expect, it } from "vitest";
import { cityHash64 } from "../../src/lib/city-hash.ts";
import { createPlacement } from "../../src/telemetry/shard/placement.ts";

const names = Array.from({ length: 1_000 }, (_, i) => `access-point-${i}`);

describe("the placement of agents", () => {
  it("puts agents of different ClickHouse shards in different shards", () => {
    const { count, shardOf } = createPlacement({ AGENT_SHARDS: 4, CLICKHOUSE_SHARDS: 3 });
    expect(count).toBe(12);
    const places = new Map<number, Set<bigint>>();
    for (const name of names) {
      const shard = shardOf(name);
      places.set(shard, (places.get(shard) ?? new Set()).add(cityHash64(name) % 3n));
    }
    expect([...places.keys()].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, i) => i));
    expect([...places.values()].map(({ size }) => size)).toEqual(Array(12).fill(1));
  });

  it("does not depend on the hash of ClickHouse if it has one shard", () => {
    const { shardOf } = createPlacement({ AGENT_SHARDS: 4, CLICKHOUSE_SHARDS: 1 });
    // Durable Objects of earlier versions have these agents.
    expect(["a", "ap-1", "access-point-7"].map(shardOf)).toEqual([0, 2, 0]);
  });
});
