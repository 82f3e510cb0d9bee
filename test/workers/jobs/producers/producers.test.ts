import { describe, expect, it, vi } from "vitest";
import { produceAgentHistory } from "../../../../src/jobs/producers/agent-history.ts";
import type { Throttle } from "../../../../src/jobs/producers/flow-control.ts";
import { countThatFits, MAX_ROWS, type Producer, type ProducerStep } from "../../../../src/jobs/producers/producer.ts";
import { ProducerRunner } from "../../../../src/jobs/producers/producer-runner.ts";
import type { NewMessage } from "../../../../src/jobs/stream/message-buffer.ts";
import { encodeJson } from "../../../../src/lib/encoding.ts";
import { Unavailable } from "../../../../src/lib/errors.ts";
import { ChangeFeed } from "../../../../src/telemetry/shard/change-feed.ts";
import type { AgentSample } from "../../../../src/telemetry/store/telemetry-store.ts";

const INPUT = { kind: "agent_details" } as const;

/** The storage and the messages that survive when the object that runs a producer is evicted. */
class ObjectStorage {
  readonly values = new Map<string, unknown>();
  readonly messages: NewMessage[] = [];
  readonly reports: string[] = [];
  room = Number.POSITIVE_INFINITY;
  throttle: () => Throttle = () => ({ go: true, pauseMs: 0 });
  beforeReport: () => Promise<void> = async () => {};
  /** When the last reader left; undefined while one is connected. */
  unreadSinceMs: number | undefined;
  now: () => number = Date.now;
  isTooLarge: (message: NewMessage) => boolean = () => false;

  createRunner(producer: Producer): ProducerRunner {
    const kv = {
      get: (key: string) => structuredClone(this.values.get(key)),
      put: (key: string, value: unknown) => void this.values.set(key, structuredClone(value)),
    };
    return new ProducerRunner({
      storage: { kv: kv as unknown as SyncKvStorage },
      createProducer: () => producer,
      hasRoomFor: (messages) => this.messages.length + messages.length <= this.room,
      append: (message) =>
        this.isTooLarge(message) ? { outcome: "too_large" } : { outcome: "stored", seq: this.messages.push(message) },
      deliver: async () => {},
      throttle: () => this.throttle(),
      reportState: async (_, { state, detail }) => {
        await this.beforeReport();
        this.reports.push(state === "running" && detail !== "" ? `${state}: ${detail}` : state);
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

/** Returns a producer that counts to `end`, one number per step. */
const counting = (end: number, before: (i: number) => void = () => {}): Producer => ({
  async next(cursor): Promise<ProducerStep> {
    const i = cursor === undefined ? 0 : Number(cursor);
    before(i);
    return { rows: [encodeJson(i)], cursor: i + 1, isLast: i + 1 === end, ...(i === 0 && { estimated: end }) };
  },
});

describe("a producer runner", () => {
  it("sends status messages at the start, in between and at the end, and reports the state", async () => {
    const stored = new ObjectStorage();
    const runner = stored.createRunner(counting(50));
    runner.begin("job", INPUT);
    await runner.run();
    expect(stored.rows).toEqual(Array.from({ length: 50 }, (_, i) => i));
    const statuses = stored.messages.filter(({ type }) => type === "status");
    expect(statuses.map(({ data }) => JSON.parse(data))).toEqual([
      { state: "running", rows_sent: 1, rows_estimated: 50 },
      { state: "running", rows_sent: 21, rows_estimated: 50 },
      { state: "running", rows_sent: 41, rows_estimated: 50 },
      { state: "done", rows_sent: 50, rows_estimated: 50 },
    ]);
    expect(stored.messages.map(({ final = false }) => final).indexOf(true)).toBe(stored.messages.length - 1);
    expect(stored.reports).toEqual(["running", "done"]);
    expect(runner.nextDueMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("continues in another object without missing or repeated rows", async () => {
    const stored = new ObjectStorage();
    const first = stored.createRunner(
      counting(30, (i) => {
        if (i === 12) throw new Unavailable("store", new Error("away"));
      }),
    );
    first.begin("job", INPUT);
    await first.run();
    expect(stored.rows.at(-1)).toBe(11);
    expect(first.nextDueMs).toBeLessThan(Date.now() + 10_000);
    await stored.createRunner(counting(30)).run();
    expect(stored.rows).toEqual(Array.from({ length: 30 }, (_, i) => i));
  });

  it("pauses when throttled or when the buffer is full, and loses nothing", async () => {
    const stored = new ObjectStorage();
    stored.throttle = () => (stored.messages.length < 5 ? { go: true, pauseMs: 0 } : { go: false });
    const runner = stored.createRunner(counting(20));
    runner.begin("job", INPUT);
    await runner.run();
    expect(stored.messages).toHaveLength(5);
    stored.throttle = () => ({ go: true, pauseMs: 1 });
    stored.room = 10;
    await runner.run();
    expect(stored.messages.length).toBeLessThanOrEqual(10);
    expect(runner.isUnfinished).toBe(true);
    stored.room = Number.POSITIVE_INFINITY;
    await runner.run();
    expect(stored.rows).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it("sends an error message after a permanent failure, without its cause", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {});
    const stored = new ObjectStorage();
    const runner = stored.createRunner(
      counting(5, (i) => {
        if (i === 2) throw new Error("secret");
      }),
    );
    runner.begin("job", INPUT);
    await runner.run();
    errors.mockRestore();
    expect(stored.messages.at(-1)).toMatchObject({ type: "error", final: true });
    expect(stored.messages.at(-1)?.data).not.toContain("secret");
    expect(stored.reports).toEqual(["running", "failed"]);
  });

  it("fails without retries if a row is larger than a message may be", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {});
    const stored = new ObjectStorage();
    stored.isTooLarge = ({ data }) => data === "[2]";
    const runner = stored.createRunner(counting(5));
    runner.begin("job", INPUT);
    await runner.run();
    errors.mockRestore();
    expect(stored.rows).toEqual([0, 1]);
    expect(stored.messages.at(-1)).toMatchObject({ type: "error", final: true });
    expect(stored.reports).toEqual(["running", "failed"]);
  });

  it("reports the state later if the job store is unavailable", async () => {
    const stored = new ObjectStorage();
    stored.beforeReport = async () => {
      throw new Unavailable("index", new Error("away"));
    };
    const runner = stored.createRunner(counting(3));
    runner.begin("job", INPUT);
    await runner.run();
    expect(Number.isFinite(runner.nextDueMs)).toBe(true);
    stored.beforeReport = async () => {};
    await runner.run();
    expect([stored.rows.length, stored.reports.at(-1)]).toEqual([3, "done"]);
  });

  it("stops when the job is closed", async () => {
    const stored = new ObjectStorage();
    const runner = stored.createRunner(
      counting(10, (i) => {
        if (i === 4) runner.stop();
      }),
    );
    runner.begin("job", INPUT);
    await runner.run();
    expect(stored.rows).toEqual([0, 1, 2, 3]);
    expect(runner.nextDueMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("countThatFits", () => {
  it("limits a message by rows and by bytes, and allows at least one row", () => {
    expect(countThatFits(Array.from({ length: MAX_ROWS + 1 }, () => encodeJson(1)))).toBe(MAX_ROWS);
    const large = encodeJson("x".repeat(300 * 1024));
    expect(countThatFits([large, large, large])).toBe(1);
    expect(countThatFits([encodeJson("x".repeat(1024 * 1024))])).toBe(1);
    expect(countThatFits([])).toBe(0);
  });
});

describe("a live stream without a reader", () => {
  const SECOND_MS = 1_000;
  const MINUTE_MS = 60_000;
  const HOUR_MS = 60 * MINUTE_MS;
  const SUSPENDED = "running: Suspended until a reader connects";

  /** Returns an agent that reports every second. Its clock moves when the stream waits for changes, or by `advance`. */
  function reportingAgent(stored: ObjectStorage, lastsMs: number) {
    const startMs = 1_800_000_000_000;
    const clock = { ms: startMs };
    const samples: AgentSample[] = [];
    const feed = new ChangeFeed({
      maxSamples: 1_000,
      maxLength: 1e6,
      maxTotalLength: 1_000_000,
      maxFollowed: 100,
      followedMs: MINUTE_MS,
      now: () => clock.ms,
    });
    const requests = { polls: 0 };
    const advance = (ms: number): void => {
      for (const endMs = clock.ms + ms; clock.ms < endMs; ) {
        clock.ms += SECOND_MS;
        const sample: AgentSample = { apId: "ap", tsMs: clock.ms, metrics: { m: clock.ms }, texts: {} };
        samples.push(sample);
        feed.add([sample]);
      }
    };
    const range = { apId: "ap", fromMs: startMs, toMs: startMs + lastsMs };
    const producer = produceAgentHistory({
      readings: {
        history: async ({ fromMs, toMs, of, after, limit }) =>
          samples
            .filter(({ tsMs }) => of === "numbers" && tsMs >= fromMs && tsMs <= toMs && tsMs > (after?.tsMs ?? 0))
            .slice(0, limit)
            .map(({ tsMs }) => JSON.stringify({ time: new Date(tsMs).toISOString(), field: "m", value: tsMs })),
        countHistory: async () => samples.length,
      },
      shards: {
        news: async (apId, place, waitMs) => {
          requests.polls++;
          advance(waitMs);
          return await feed.since(apId, place, 0);
        },
      },
      range,
      now: () => clock.ms,
    });
    stored.now = () => clock.ms;
    const runner = stored.createRunner(producer);
    runner.begin("job", { kind: "agent_data", ...range });
    const reported = () => samples.map(({ tsMs }) => tsMs).filter((tsMs) => tsMs <= range.toMs);
    const delivered = () => {
      const rows = stored.messages.filter(({ type }) => type === "agent_data").map(({ data }) => JSON.parse(data));
      return [...new Set((rows as { value: number }[][]).flat().map(({ value }) => value))].toSorted((a, b) => a - b);
    };
    return { clock, startMs, range, requests, advance, runner, reported, delivered };
  }

  it("is suspended after five minutes, polls nothing meanwhile, and resumes without loss when one connects", async () => {
    const stored = new ObjectStorage();
    const { clock, startMs, requests, advance, runner, reported, delivered } = reportingAgent(stored, 3 * HOUR_MS);
    stored.unreadSinceMs = startMs;
    await runner.run();
    expect(clock.ms - startMs).toBeGreaterThanOrEqual(5 * MINUTE_MS);
    expect(clock.ms - startMs).toBeLessThan(6 * MINUTE_MS);
    expect(stored.reports).toEqual(["running", SUSPENDED]);
    const { polls } = requests;
    for (let alarm = 0; alarm < 2; alarm++) {
      // Rarely enough to sleep, and often enough to stay in the job store.
      expect(runner.nextDueMs - clock.ms).toBe(HOUR_MS);
      advance(HOUR_MS);
      await runner.run();
    }
    expect(requests.polls).toBe(polls);
    expect(delivered().length).toBeLessThan(reported().length);

    stored.unreadSinceMs = undefined;
    await runner.run();
    expect(delivered()).toEqual(reported());
    expect(stored.reports).toEqual(["running", SUSPENDED, "running", "done"]);
  });

  it("finishes by itself at its end, for a reader that connects later", async () => {
    const stored = new ObjectStorage();
    const { clock, startMs, range, advance, runner, reported, delivered } = reportingAgent(stored, 20 * MINUTE_MS);
    stored.unreadSinceMs = startMs;
    await runner.run();
    expect(runner.nextDueMs).toBe(range.toMs);
    advance(range.toMs - clock.ms + MINUTE_MS);
    await runner.run();
    expect(delivered()).toEqual(reported());
    expect(stored.reports).toEqual(["running", SUSPENDED, "running", "done"]);
    expect(stored.messages.at(-1)).toMatchObject({ type: "status", final: true });
  });

  it("continues while a reader is connected, and for five minutes after it left", async () => {
    const stored = new ObjectStorage();
    const { clock, startMs, runner } = reportingAgent(stored, HOUR_MS);
    stored.throttle = () => {
      if (clock.ms - startMs >= 20 * MINUTE_MS) stored.unreadSinceMs ??= clock.ms;
      return { go: true, pauseMs: 0 };
    };
    await runner.run();
    expect(clock.ms - startMs).toBeGreaterThanOrEqual(25 * MINUTE_MS);
    expect(clock.ms - startMs).toBeLessThan(26 * MINUTE_MS);
  });
});
