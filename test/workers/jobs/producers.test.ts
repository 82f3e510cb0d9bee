import { env } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createAgentStore } from "../../../src/accounts/agent-store.ts";
import { parseEnv } from "../../../src/env.ts";
import { produceAgentDetails } from "../../../src/jobs/producers/agent-details.ts";
import { produceAgentHistory } from "../../../src/jobs/producers/agent-history.ts";
import type { Throttle } from "../../../src/jobs/producers/flow-control.ts";
import { countThatFits, MAX_ROWS, type Producer, type ProducerStep } from "../../../src/jobs/producers/producer.ts";
import { ProducerRunner } from "../../../src/jobs/producers/producer-runner.ts";
import type { NewMessage } from "../../../src/jobs/stream/message-buffer.ts";
import { Unavailable } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { ChangeFeed } from "../../../src/telemetry/shard/change-feed.ts";
import type { AgentSample } from "../../../src/telemetry/store/telemetry-store.ts";
import { newAgent } from "../support.ts";

const WORK = { kind: "agent_details" } as const;

/** What is left of a production when the object that ran it has gone: its storage and its messages. */
class Remains {
  readonly values = new Map<string, unknown>();
  readonly messages: NewMessage[] = [];
  readonly notes: string[] = [];
  room = Number.POSITIVE_INFINITY;
  throttle: () => Throttle = () => ({ go: true, pauseMs: 0 });
  note: () => Promise<void> = async () => {};
  /** When the last reader left; nothing while one is there. */
  unreadSinceMs: number | undefined;
  now: () => number = Date.now;
  isTooLarge: (message: NewMessage) => boolean = () => false;

  wake(producer: Producer): ProducerRunner {
    const kv = {
      get: (key: string) => structuredClone(this.values.get(key)),
      put: (key: string, value: unknown) => void this.values.set(key, structuredClone(value)),
    };
    return new ProducerRunner({
      storage: { kv: kv as unknown as SyncKvStorage },
      producerOf: () => producer,
      hasRoomFor: (messages) => this.messages.length + messages.length <= this.room,
      append: (message) =>
        this.isTooLarge(message) ? { outcome: "too_large" } : { outcome: "stored", seq: this.messages.push(message) },
      deliver: async () => {},
      throttle: () => this.throttle(),
      note: async (_, { state, detail }) => {
        await this.note();
        this.notes.push(state === "running" && detail !== "" ? `${state}: ${detail}` : state);
      },
      unreadSinceMs: () => this.unreadSinceMs,
      now: () => this.now(),
    });
  }

  get rows(): number[] {
    return this.messages
      .filter(({ type }) => type === "agent_details")
      .flatMap(({ data }) => JSON.parse(data) as number[]);
  }
}

/** Counts to `end`, one number at a step. */
const counting = (end: number, before: (i: number) => void = () => {}): Producer => ({
  async next(cursor): Promise<ProducerStep> {
    const i = cursor === undefined ? 0 : Number(cursor);
    before(i);
    return { rows: [String(i)], cursor: i + 1, isLast: i + 1 === end, ...(i === 0 && { estimated: end }) };
  },
});

describe("a production", () => {
  it("says where it stands at the start, now and then, and at the end, and tells the index", async () => {
    const remains = new Remains();
    const production = remains.wake(counting(50));
    production.begin("job", WORK);
    await production.run();
    expect(remains.rows).toEqual(Array.from({ length: 50 }, (_, i) => i));
    const statuses = remains.messages.filter(({ type }) => type === "status");
    expect(statuses.map(({ data }) => JSON.parse(data))).toEqual([
      { state: "running", rows_sent: 1, rows_estimated: 50 },
      { state: "running", rows_sent: 21, rows_estimated: 50 },
      { state: "running", rows_sent: 41, rows_estimated: 50 },
      { state: "done", rows_sent: 50, rows_estimated: 50 },
    ]);
    expect(remains.messages.map(({ final = false }) => final).indexOf(true)).toBe(remains.messages.length - 1);
    expect(remains.notes).toEqual(["running", "done"]);
    expect(production.nextDueMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("goes on in another object from where it was, without a hole or a double", async () => {
    const remains = new Remains();
    const first = remains.wake(
      counting(30, (i) => {
        if (i === 12) throw new Unavailable("store", new Error("away"));
      }),
    );
    first.begin("job", WORK);
    await first.run();
    expect(remains.rows.at(-1)).toBe(11);
    expect(first.nextDueMs).toBeLessThan(Date.now() + 10_000);
    await remains.wake(counting(30)).run();
    expect(remains.rows).toEqual(Array.from({ length: 30 }, (_, i) => i));
  });

  it("waits where it may not go on, and where there is no room, and loses nothing by it", async () => {
    const remains = new Remains();
    remains.throttle = () => (remains.messages.length < 5 ? { go: true, pauseMs: 0 } : { go: false });
    const production = remains.wake(counting(20));
    production.begin("job", WORK);
    await production.run();
    expect(remains.messages).toHaveLength(5);
    remains.throttle = () => ({ go: true, pauseMs: 1 });
    remains.room = 10;
    await production.run();
    expect(remains.messages.length).toBeLessThanOrEqual(10);
    expect(production.isUnfinished).toBe(true);
    remains.room = Number.POSITIVE_INFINITY;
    await production.run();
    expect(remains.rows).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it("fails with a message where something is wrong for good, and says nothing of the cause", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {});
    const remains = new Remains();
    const production = remains.wake(
      counting(5, (i) => {
        if (i === 2) throw new Error("secret");
      }),
    );
    production.begin("job", WORK);
    await production.run();
    errors.mockRestore();
    expect(remains.messages.at(-1)).toMatchObject({ type: "error", final: true });
    expect(remains.messages.at(-1)?.data).not.toContain("secret");
    expect(remains.notes).toEqual(["running", "failed"]);
  });

  it("fails, and does not try for ever, where a row is larger than a message may be", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {});
    const remains = new Remains();
    remains.isTooLarge = ({ data }) => data === "[2]";
    const production = remains.wake(counting(5));
    production.begin("job", WORK);
    await production.run();
    errors.mockRestore();
    expect(remains.rows).toEqual([0, 1]);
    expect(remains.messages.at(-1)).toMatchObject({ type: "error", final: true });
    expect(remains.notes).toEqual(["running", "failed"]);
  });

  it("is told to the index later where that is away", async () => {
    const remains = new Remains();
    remains.note = async () => {
      throw new Unavailable("index", new Error("away"));
    };
    const production = remains.wake(counting(3));
    production.begin("job", WORK);
    await production.run();
    expect(Number.isFinite(production.nextDueMs)).toBe(true);
    remains.note = async () => {};
    await production.run();
    expect([remains.rows.length, remains.notes.at(-1)]).toEqual([3, "done"]);
  });

  it("stops when the job is closed meanwhile", async () => {
    const remains = new Remains();
    const production = remains.wake(
      counting(10, (i) => {
        if (i === 4) production.stop();
      }),
    );
    production.begin("job", WORK);
    await production.run();
    expect(remains.rows).toEqual([0, 1, 2, 3]);
    expect(production.nextDueMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("rows", () => {
  it("fit in a message by number and by size, one always", () => {
    expect(countThatFits(Array.from({ length: MAX_ROWS + 1 }, () => "1"))).toBe(MAX_ROWS);
    const large = "x".repeat(300 * 1024);
    expect(countThatFits([large, large, large])).toBe(1);
    expect(countThatFits(["x".repeat(1024 * 1024)])).toBe(1);
    expect(countThatFits([])).toBe(0);
  });
});

describe("the details of all agents", () => {
  it("leave out nobody where one that was told already is deleted meanwhile", async () => {
    const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
    const store = createAgentStore(database);
    // So large that each takes a message of its own.
    const agents = await Promise.all([1, 2, 3].map(() => newAgent({ note: "x".repeat(400_000) })));
    const [first = "", ...others] = agents.map(({ apId }) => apId).toSorted();
    const producer = produceAgentDetails(store, [first, ...others]);
    const told: string[] = [];
    for (let step = await producer.next(undefined); ; step = await producer.next(step.cursor)) {
      told.push(...step.rows.map((row) => String((JSON.parse(row) as { ap_id: string }).ap_id)));
      if (step.isLast) break;
      if (told.length === 1) await database.run(sql`delete from agents where ap_id = ${first}`);
    }
    expect(told).toEqual([first, ...others]);
  });
});

describe("an agent's history that goes on", () => {
  it("reads the store again where the shard does not remember all that came", async () => {
    const clock = { ms: 1_000_000 };
    const asked: { of: string; fromMs: number; toMs: number }[] = [];
    const answers = [
      { place: { epoch: "a", seq: 1 }, samples: [], isIncomplete: false },
      { place: { epoch: "b", seq: 5 }, samples: [], isIncomplete: true },
      {
        place: { epoch: "b", seq: 6 },
        samples: [{ apId: "ap", tsMs: clock.ms, metrics: { m: 7 }, texts: { t: "x" } }],
        isIncomplete: false,
      },
    ];
    const producer = produceAgentHistory({
      store: {
        history: async ({ of, fromMs, toMs, after }) => {
          asked.push({ of, fromMs, toMs });
          return of === "numbers" && after === undefined
            ? ['{"time":"1970-01-01T00:10:00.000Z","field":"m","value":1}']
            : [];
        },
        countHistory: async () => 1,
      },
      shards: {
        news: async () => answers.shift() ?? { place: { epoch: "b", seq: 6 }, samples: [], isIncomplete: false },
      },
      range: { apId: "ap", fromMs: 0, toMs: clock.ms + 100_000 },
      now: () => clock.ms,
    });
    const rows: string[] = [];
    let cursor: unknown;
    for (let isLast = false; !isLast; ) {
      const step = await producer.next(cursor);
      // As it comes back from storage.
      cursor = structuredClone(step.cursor);
      rows.push(...step.rows);
      isLast = step.isLast;
      if (answers.length === 0) clock.ms += 50_000;
    }
    expect(rows.map((row) => JSON.parse(row))).toEqual([
      { time: "1970-01-01T00:10:00.000Z", field: "m", value: 1 },
      { time: "1970-01-01T00:10:00.000Z", field: "m", value: 1 },
      { time: "1970-01-01T00:16:40.000Z", field: "m", value: 7 },
      { time: "1970-01-01T00:16:40.000Z", field: "t", value: "x" },
    ]);
    expect(asked.filter(({ of }) => of === "numbers").map(({ fromMs }) => fromMs)).toEqual([0, 0, 940_000, 940_000]);
  });
});

describe("a live stream without a reader", () => {
  const SECOND_MS = 1_000;
  const MINUTE_MS = 60_000;
  const HOUR_MS = 60 * MINUTE_MS;
  const SUSPENDED = "running: Suspended until a reader connects";

  /** An agent that reports every second of a clock, which moves when the stream waits for news or a test says so. */
  function reportingAgent(remains: Remains, lastsMs: number) {
    const startMs = 1_800_000_000_000;
    const clock = { ms: startMs };
    const stored: AgentSample[] = [];
    const news = new ChangeFeed({
      maxSamples: 1_000,
      maxLength: 1e6,
      maxTotalLength: 1_000_000,
      maxFollowed: 100,
      followedMs: MINUTE_MS,
      now: () => clock.ms,
    });
    const asked = { polls: 0 };
    const advance = (ms: number): void => {
      for (const endMs = clock.ms + ms; clock.ms < endMs; ) {
        clock.ms += SECOND_MS;
        const sample: AgentSample = { apId: "ap", tsMs: clock.ms, metrics: { m: clock.ms }, texts: {} };
        stored.push(sample);
        news.add([sample]);
      }
    };
    const range = { apId: "ap", fromMs: startMs, toMs: startMs + lastsMs };
    const producer = produceAgentHistory({
      store: {
        history: async ({ fromMs, toMs, of, after, limit }) =>
          stored
            .filter(({ tsMs }) => of === "numbers" && tsMs >= fromMs && tsMs <= toMs && tsMs > (after?.tsMs ?? 0))
            .slice(0, limit)
            .map(({ tsMs }) => JSON.stringify({ time: new Date(tsMs).toISOString(), field: "m", value: tsMs })),
        countHistory: async () => stored.length,
      },
      shards: {
        news: async (apId, place, waitMs) => {
          asked.polls++;
          advance(waitMs);
          return await news.since(apId, place, 0);
        },
      },
      range,
      now: () => clock.ms,
    });
    remains.now = () => clock.ms;
    const production = remains.wake(producer);
    production.begin("job", { kind: "agent_data", ...range });
    const reported = () => stored.map(({ tsMs }) => tsMs).filter((tsMs) => tsMs <= range.toMs);
    const delivered = () => {
      const rows = remains.messages.filter(({ type }) => type === "agent_data").map(({ data }) => JSON.parse(data));
      return [...new Set((rows as { value: number }[][]).flat().map(({ value }) => value))].toSorted((a, b) => a - b);
    };
    return { clock, startMs, range, asked, advance, production, reported, delivered };
  }

  it("is suspended after five minutes, asks for nothing meanwhile, and resumes without loss when one connects", async () => {
    const remains = new Remains();
    const { clock, startMs, asked, advance, production, reported, delivered } = reportingAgent(remains, 3 * HOUR_MS);
    remains.unreadSinceMs = startMs;
    await production.run();
    expect(clock.ms - startMs).toBeGreaterThanOrEqual(5 * MINUTE_MS);
    expect(clock.ms - startMs).toBeLessThan(6 * MINUTE_MS);
    expect(remains.notes).toEqual(["running", SUSPENDED]);
    const { polls } = asked;
    for (let alarm = 0; alarm < 2; alarm++) {
      // Rarely enough to sleep, often enough that the index does not forget it.
      expect(production.nextDueMs - clock.ms).toBe(HOUR_MS);
      advance(HOUR_MS);
      await production.run();
    }
    expect(asked.polls).toBe(polls);
    expect(delivered().length).toBeLessThan(reported().length);

    remains.unreadSinceMs = undefined;
    await production.run();
    expect(delivered()).toEqual(reported());
    expect(remains.notes).toEqual(["running", SUSPENDED, "running", "done"]);
  });

  it("finishes by itself if its end passes meanwhile, for a reader that comes later", async () => {
    const remains = new Remains();
    const { clock, startMs, range, advance, production, reported, delivered } = reportingAgent(remains, 20 * MINUTE_MS);
    remains.unreadSinceMs = startMs;
    await production.run();
    expect(production.nextDueMs).toBe(range.toMs);
    advance(range.toMs - clock.ms + MINUTE_MS);
    await production.run();
    expect(delivered()).toEqual(reported());
    expect(remains.notes).toEqual(["running", SUSPENDED, "running", "done"]);
    expect(remains.messages.at(-1)).toMatchObject({ type: "status", final: true });
  });

  it("goes on while a reader is there, and for a while after it left", async () => {
    const remains = new Remains();
    const { clock, startMs, production } = reportingAgent(remains, HOUR_MS);
    remains.throttle = () => {
      if (clock.ms - startMs >= 20 * MINUTE_MS) remains.unreadSinceMs ??= clock.ms;
      return { go: true, pauseMs: 0 };
    };
    await production.run();
    expect(clock.ms - startMs).toBeGreaterThanOrEqual(25 * MINUTE_MS);
    expect(clock.ms - startMs).toBeLessThan(26 * MINUTE_MS);
  });
});
