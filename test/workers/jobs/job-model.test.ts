import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
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

/** Whatever happens to a job, in whatever order, its readers see what they were promised. */

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

interface Reading {
  client: Client;
  form: StreamFormat;
  /** All that the reader is to have heard. */
  heard: string[];
}

/** What §6 promises, in the plainest words. */
class Model {
  messages: Message[] = [];
  readings: Reading[] = [];
  sentUpTo = 0;
  acknowledgedUpTo = 0;
  expiredUpTo = 0;
  touchedMs = 0;

  get kept(): Message[] {
    return this.messages.filter(({ seq }) => seq > Math.max(this.acknowledgedUpTo, this.expiredUpTo));
  }

  expire(): void {
    const old = this.messages.filter(({ storedMs }) => storedMs + RETENTION_MS <= Date.now());
    this.expiredUpTo = old.at(-1)?.seq ?? this.expiredUpTo;
  }

  /** The number that a post is to be answered with. */
  post(type: StoredKind, text: string, key: string | undefined): number {
    this.expire();
    const first = this.messages.findLast(
      (message) => key !== undefined && message.key === key && message.storedMs + RETENTION_MS > Date.now(),
    );
    if (first !== undefined) return first.seq;
    const message = { seq: this.messages.length + 1, type, text, key, storedMs: Date.now() };
    this.messages.push(message);
    this.touchedMs = Date.now();
    for (const reading of this.readings) this.#hear(reading, message);
    if (this.readings.length > 0) this.sentUpTo = message.seq;
    return message.seq;
  }

  connect(client: Client, form: StreamFormat, after: number): void {
    this.expire();
    this.acknowledge(after);
    const reading: Reading = { client, form, heard: [] };
    this.readings.push(reading);
    if (this.expiredUpTo > this.acknowledgedUpTo) {
      if (form === "envelope") reading.heard.push(`gap ${this.acknowledgedUpTo + 1}-${this.expiredUpTo}`);
      this.sentUpTo = Math.max(this.sentUpTo, this.expiredUpTo);
    }
    for (const message of this.kept) this.#hear(reading, message);
    this.sentUpTo = this.messages.length;
  }

  acknowledge(seq: number): void {
    this.acknowledgedUpTo = Math.max(this.acknowledgedUpTo, Math.min(seq, this.sentUpTo));
  }

  disconnect(reading: Reading): void {
    this.readings.splice(this.readings.indexOf(reading), 1);
    this.touchedMs = Date.now();
  }

  alarm(): void {
    this.expire();
    if (this.readings.length > 0) this.touchedMs = Date.now();
    else if (this.touchedMs + RETENTION_MS <= Date.now()) Object.assign(this, new Model());
  }

  #hear({ form, heard }: Reading, { seq, type, text }: Message): void {
    if (form === "envelope") heard.push(`${seq} ${type} ${text}`);
    else if (type !== "status") heard.push(text);
  }
}

function heardBy({ client, form }: Reading): string[] {
  if (form === "bare") return client.texts;
  return client.messages.map(({ seq, type, data }) => {
    if (type !== "gap") return `${seq} ${type} ${JSON.stringify(data)}`;
    const [gap] = data as [{ from_seq: number; to_seq: number }];
    expect(seq).toBe(gap.to_seq);
    return `gap ${gap.from_seq}-${gap.to_seq}`;
  });
}

async function take(job: Job, model: Model, next: Step, number: number): Promise<void> {
  switch (next.do) {
    case "post": {
      const key = next.key === undefined ? undefined : `k${next.key}`;
      const data = `[${number}]`;
      const posted = await job.post({ type: next.type, data, key });
      const seq = model.post(next.type, data, key);
      expect(posted).toEqual({
        outcome: "stored",
        seq,
        delivered: model.readings.length,
        queued: seq > model.sentUpTo,
      });
      break;
    }
    case "connect": {
      if (model.readings.length === MAX_READERS) break;
      const { form, after } = next;
      model.connect(await connect(job, { form, after }), form, after ?? 0);
      break;
    }
    case "acknowledge": {
      const reading = model.readings[next.reader];
      const seq = Math.max(0, model.messages.length - next.back);
      reading?.client.send({ ack: seq });
      if (reading !== undefined) model.acknowledge(seq);
      break;
    }
    case "disconnect": {
      const reading = model.readings[next.reader];
      reading?.client.disconnect();
      if (reading !== undefined) model.disconnect(reading);
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

async function expectAsPromised(job: Job, model: Model): Promise<void> {
  const promised = {
    messages: model.messages.length,
    acknowledgedUpTo: model.acknowledgedUpTo,
    sockets: model.readings.length,
  };
  let described = {};
  await soon(async () => {
    described = await job.describe();
    const isThere = Object.entries(promised).every(([name, value]) => Reflect.get(described, name) === value);
    return isThere && model.readings.every(({ client, heard }) => client.texts.length >= heard.length);
  });
  expect(described).toMatchObject(promised);
  for (const reading of model.readings) {
    expect(reading.client.closed).toBeUndefined();
    expect(heardBy(reading)).toEqual(reading.heard);
  }
}

describe("a job's stream, whatever happens in whatever order", () => {
  it("keeps its promises, and leaves nothing behind in the end", async () => {
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80, size: "max" }), async (script) => {
        const [job, model] = [newJob(), new Model()];
        for (const next of script) {
          await take(job, model, next, ++steps);
          await expectAsPromised(job, model);
        }
        const last = await connect(job);
        model.connect(last, "envelope", 0);
        await expectAsPromised(job, model);
        for (const { client } of [...model.readings]) client.disconnect();
        await soon(async () => (await job.describe()).sockets === 0);
        clock.forwardMs += RETENTION_MS;
        await runDurableObjectAlarm(job);
        await expectNothingLeft(job);
      }),
      // To look for the shortest script that fails must not take longer than the test may.
      { numRuns: 16, interruptAfterTimeLimit: 45_000 },
    );
    expect(steps).toBeGreaterThan(400);
  }, 60_000);
});
