import { env } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createAgentStore } from "../../../../src/accounts/agents/agent-store.ts";
import { parseEnv } from "../../../../src/env.ts";
import { produceAgentDetails } from "../../../../src/jobs/producers/agent-details.ts";
import { produceAgentHistory } from "../../../../src/jobs/producers/agent-history.ts";
import { createDatabase } from "../../../../src/storage/libsql.ts";
import { newAgent } from "../../support.ts";

describe("the producer of agents' details", () => {
  it("skips no agent if one that was already produced is deleted", async () => {
    const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
    const store = createAgentStore(database);
    // So large that each needs its own message.
    const agents = await Promise.all([1, 2, 3].map(() => newAgent({ note: "x".repeat(400_000) })));
    const [first = "", ...others] = agents.map(({ apId }) => apId).toSorted();
    const producer = produceAgentDetails(store, { apIds: [first, ...others] });
    const produced: string[] = [];
    for (let step = await producer.next(undefined); ; step = await producer.next(step.cursor)) {
      produced.push(...step.rows.map((row) => String((JSON.parse(row) as { ap_id: string }).ap_id)));
      if (step.isLast) break;
      if (produced.length === 1) await database.run(sql`delete from agents where ap_id = ${first}`);
    }
    expect(produced).toEqual([first, ...others]);
  });
});

describe("the producer of an agent's history", () => {
  it("reads the store again if the shard's change feed is incomplete", async () => {
    const clock = { ms: 1_000_000 };
    const queries: { of: string; fromMs: number; toMs: number }[] = [];
    const pages = [
      { place: { epoch: "a", seq: 1 }, samples: [], isIncomplete: false },
      { place: { epoch: "b", seq: 5 }, samples: [], isIncomplete: true },
      {
        place: { epoch: "b", seq: 6 },
        samples: [{ apId: "ap", tsMs: clock.ms, metrics: { m: 7 }, texts: { t: "x" } }],
        isIncomplete: false,
      },
    ];
    const producer = produceAgentHistory({
      readings: {
        history: async ({ of, fromMs, toMs, after }) => {
          queries.push({ of, fromMs, toMs });
          return of === "numbers" && after === undefined
            ? ['{"time":"1970-01-01T00:10:00.000Z","field":"m","value":1}']
            : [];
        },
        countHistory: async () => 1,
      },
      shards: {
        news: async () => pages.shift() ?? { place: { epoch: "b", seq: 6 }, samples: [], isIncomplete: false },
      },
      range: { apId: "ap", fromMs: 0, toMs: clock.ms + 100_000 },
      now: () => clock.ms,
    });
    const rows: string[] = [];
    let cursor: unknown;
    for (let isLast = false; !isLast; ) {
      const step = await producer.next(cursor);
      // Copies it, as storage does.
      cursor = structuredClone(step.cursor);
      rows.push(...step.rows);
      isLast = step.isLast;
      if (pages.length === 0) clock.ms += 50_000;
    }
    expect(rows.map((row) => JSON.parse(row))).toEqual([
      { time: "1970-01-01T00:10:00.000Z", field: "m", value: 1 },
      { time: "1970-01-01T00:10:00.000Z", field: "m", value: 1 },
      { time: "1970-01-01T00:16:40.000Z", field: "m", value: 7 },
      { time: "1970-01-01T00:16:40.000Z", field: "t", value: "x" },
    ]);
    expect(queries.filter(({ of }) => of === "numbers").map(({ fromMs }) => fromMs)).toEqual([0, 0, 940_000, 940_000]);
  });
});
