import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeJson } from "../../../src/lib/encoding.ts";
import type { StoredKind, StreamFormat } from "../../../src/schemas/stream-protocol.ts";
import {
  alarmOf,
  type Client,
  connect,
  expectNothingLeft,
  type Job,
  movableClock,
  newJob,
  soon,
} from "./job-support.ts";

/** Runs random sequences of events against a stream, and compares what readers receive with a simple model. */

const HOUR_MS = 3_600_000;
const RETENTION_MS = 24 * HOUR_MS;
const MAX_READERS = 5;

const clock = movableClock({ standsStill: true });

type Step =
  | { do: "post"; key: number | undefined; type: StoredKind }
  | { do: "connect"; after: number | undefined; form: StreamFormat }
  | { do: "acknowledge"; reader: number; back: number }
  | { do: "disconnect"; reader: number }
  | { do: "evict" }
  | { do: "wait"; ms: number; isAlarmLate: boolean };

const reader = fc.nat(MAX_READERS - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("post" as const),
      key: fc.option(fc.nat(2), { nil: undefined, freq: 2 }),
      type: fc.constantFrom<StoredKind[]>("agent_data", "emulator", "status"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("connect" as const),
      after: fc.option(fc.nat(12), { nil: undefined }),
      form: fc.constantFrom<StreamFormat[]>("envelope", "envelope", "bare"),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("acknowledge" as const), reader, back: fc.integer({ min: -2, max: 4 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("disconnect" as const), reader }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("evict" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 4_000, 6_000, 70_000, HOUR_MS, 9 * HOUR_MS, RETENTION_MS),
      isAlarmLate: fc.boolean(),
    }),
  },
);

interface Message {
  seq: number;
  type: StoredKind;
  text: string;
  key: string | undefined;
  storedMs: number;
}

interface Connection {
  client: Client;
  form: StreamFormat;
  /** What the reader must have received. */
  expected: string[];
}

/** The stream's specification, as simple as possible. */
class Model {
  messages: Message[] = [];
  connections: Connection[] = [];
  sentUpTo = 0;
  acknowledgedUpTo = 0;
  expiredUpTo = 0;
  lastActiveMs = 0;

  get kept(): Message[] {
    return this.messages.filter(({ seq }) => seq > Math.max(this.acknowledgedUpTo, this.expiredUpTo));
  }

  expire(): void {
    const old = this.messages.filter(({ storedMs }) => storedMs + RETENTION_MS <= Date.now());
    this.expiredUpTo = old.at(-1)?.seq ?? this.expiredUpTo;
  }

  /** Returns the number that a post must return. */
  post(type: StoredKind, text: string, key: string | undefined): number {
    this.expire();
    const first = this.messages.findLast(
      (message) => key !== undefined && message.key === key && message.storedMs + RETENTION_MS > Date.now(),
    );
    if (first !== undefined) return first.seq;
    const message = { seq: this.messages.length + 1, type, text, key, storedMs: Date.now() };
    this.messages.push(message);
    this.lastActiveMs = Date.now();
    for (const connection of this.connections) this.#receive(connection, message);
    if (this.connections.length > 0) this.sentUpTo = message.seq;
    return message.seq;
  }

  connect(client: Client, form: StreamFormat, after: number): void {
    this.expire();
    this.acknowledge(after);
    const connection: Connection = { client, form, expected: [] };
    this.connections.push(connection);
    if (this.expiredUpTo > this.acknowledgedUpTo) {
      if (form === "envelope") connection.expected.push(`gap ${this.acknowledgedUpTo + 1}-${this.expiredUpTo}`);
      this.sentUpTo = Math.max(this.sentUpTo, this.expiredUpTo);
    }
    for (const message of this.kept) this.#receive(connection, message);
    this.sentUpTo = this.messages.length;
  }

  acknowledge(seq: number): void {
    this.acknowledgedUpTo = Math.max(this.acknowledgedUpTo, Math.min(seq, this.sentUpTo));
  }

  disconnect(connection: Connection): void {
    this.connections.splice(this.connections.indexOf(connection), 1);
    this.lastActiveMs = Date.now();
  }

  alarm(): void {
    this.expire();
    if (this.connections.length > 0) this.lastActiveMs = Date.now();
    else if (this.lastActiveMs + RETENTION_MS <= Date.now()) Object.assign(this, new Model());
  }

  #receive({ form, expected }: Connection, { seq, type, text }: Message): void {
    if (form === "envelope") expected.push(`${seq} ${type} ${text}`);
    else if (type !== "status") expected.push(text);
  }
}

function receivedBy({ client, form }: Connection): string[] {
  if (form === "bare") return client.texts;
  return client.messages.map(({ seq, type, data }) => {
    if (type !== "gap") return `${seq} ${type} ${JSON.stringify(data)}`;
    const [gap] = data as [{ from_seq: number; to_seq: number }];
    expect(seq).toBe(gap.to_seq);
    return `gap ${gap.from_seq}-${gap.to_seq}`;
  });
}

async function apply(job: Job, model: Model, next: Step, number: number): Promise<void> {
  switch (next.do) {
    case "post": {
      const key = next.key === undefined ? undefined : `k${next.key}`;
      const data = encodeJson([number]);
      const [posted] = await job.post([{ type: next.type, data, key }]);
      const seq = model.post(next.type, data, key);
      expect(posted).toEqual({
        outcome: "stored",
        seq,
        delivered: model.connections.length,
        queued: seq > model.sentUpTo,
      });
      break;
    }
    case "connect": {
      if (model.connections.length === MAX_READERS) break;
      const { form, after } = next;
      model.connect(await connect(job, { form, after }), form, after ?? 0);
      break;
    }
    case "acknowledge": {
      const connection = model.connections[next.reader];
      const seq = Math.max(0, model.messages.length - next.back);
      connection?.client.send({ ack: seq });
      if (connection !== undefined) model.acknowledge(seq);
      break;
    }
    case "disconnect": {
      const connection = model.connections[next.reader];
      connection?.client.disconnect();
      if (connection !== undefined) model.disconnect(connection);
      break;
    }
    case "evict":
      await job.describe();
      await evictDurableObject(job);
      break;
    case "wait": {
      clock.forwardMs += next.ms;
      if (next.isAlarmLate) break;
      const alarmMs = await alarmOf(job);
      if (alarmMs === null || alarmMs > Date.now()) break;
      await runDurableObjectAlarm(job);
      model.alarm();
      break;
    }
  }
}

async function expectAsModelled(job: Job, model: Model): Promise<void> {
  const expected = {
    messages: model.messages.length,
    acknowledgedUpTo: model.acknowledgedUpTo,
    sockets: model.connections.length,
  };
  let described = {};
  await soon(async () => {
    described = await job.describe();
    const isReached = Object.entries(expected).every(([name, value]) => Reflect.get(described, name) === value);
    return isReached && model.connections.every(({ client, expected }) => client.texts.length >= expected.length);
  });
  expect(described).toMatchObject(expected);
  for (const connection of model.connections) {
    expect(connection.client.closed).toBeUndefined();
    expect(receivedBy(connection)).toEqual(connection.expected);
  }
}

describe("a job's stream under random events", () => {
  it("delivers as modelled, and leaves no storage behind at its end", async () => {
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80, size: "max" }), async (script) => {
        const [job, model] = [newJob(), new Model()];
        for (const next of script) {
          await apply(job, model, next, ++steps);
          await expectAsModelled(job, model);
        }
        const last = await connect(job);
        model.connect(last, "envelope", 0);
        await expectAsModelled(job, model);
        for (const { client } of [...model.connections]) client.disconnect();
        await soon(async () => (await job.describe()).sockets === 0);
        clock.forwardMs += RETENTION_MS;
        await runDurableObjectAlarm(job);
        await expectNothingLeft(job);
      }),
      // Shrinking a failing script must not take longer than the test may.
      { numRuns: 16, interruptAfterTimeLimit: 45_000 },
    );
    expect(steps).toBeGreaterThan(400);
  }, 60_000);
});
