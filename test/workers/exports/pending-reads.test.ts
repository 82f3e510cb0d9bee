import { describe, expect, it } from "vitest";
import { PendingReads } from "../../../src/telemetry/shard/pending-reads.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";

const sample = (apId: string, tsMs: number, text = ""): AgentSample => ({
  apId,
  tsMs,
  metrics: { x: tsMs },
  texts: { text },
});
const parse = (text: string): AgentSample[] => JSON.parse(`[${text}]`) as AgentSample[];

function readsOf(samples: AgentSample[], drained = samples) {
  let current = samples;
  let drains = 0;
  const reads = new PendingReads({
    journal: {
      samplesOf: (apId) => current.filter((one) => one.apId === apId),
      *rows() {
        yield { seq: 1, samples: current };
      },
    },
    drain: async () => {
      drains++;
      current = drained;
    },
  });
  return { reads, drains: () => drains };
}

const RANGE = { fromMs: 1, toMs: 10 };

describe("pending samples", () => {
  it.each([2, 30])("of %i agents are those in the range, of these agents only", async (count) => {
    const names = Array.from({ length: count }, (_, i) => `ap-${i}`);
    const samples = [...names.map((name, i) => sample(name, i)), sample("other", 5)];
    const { reads, drains } = readsOf(samples);
    const { text, isTruncated } = await reads.ofMany(names, RANGE);
    expect(parse(text)).toEqual(samples.filter(({ apId, tsMs }) => apId !== "other" && tsMs >= 1 && tsMs <= 10));
    expect(isTruncated).toBe(false);
    expect(drains()).toBe(0);
  });

  it("are written to the store first if there are many", async () => {
    const many = Array.from({ length: 60_000 }, () => sample("a", 5));
    const { reads, drains } = readsOf(many, [sample("a", 7)]);
    const { text, isTruncated } = await reads.ofMany(["a"], RANGE);
    expect(parse(text)).toEqual([sample("a", 7)]);
    expect(isTruncated).toBe(false);
    expect(drains()).toBe(1);
  });

  it("are the last ones if the store does not respond", async () => {
    const many = Array.from({ length: 6_000 }, (_, i) => sample("a", 5, String(i)));
    const { text, isTruncated } = await readsOf(many).reads.ofAgent("a", RANGE);
    expect(parse(text)).toEqual(many.slice(-5_000));
    expect(isTruncated).toBe(true);
  });

  it("have limited length, but are never cut", async () => {
    const long = Array.from({ length: 40 }, (_, i) => sample("a", 5, `${i}${"x".repeat(300_000)}`));
    const { text, isTruncated } = await readsOf(long).reads.ofMany(["a"], RANGE);
    expect(text.length).toBeLessThanOrEqual(8 * 1024 * 1024);
    expect(parse(text)).toEqual(long.slice(-27));
    expect(isTruncated).toBe(true);
  });
});
