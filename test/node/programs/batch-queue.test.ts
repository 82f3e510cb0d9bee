import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { BatchQueue, BatchRejected } from "../../../src/programs/bridge/batch-queue.ts";
import { BridgeClient } from "../../../src/programs/bridge/bridge-client.ts";
import { type Outgoing, toOutgoing } from "../../../src/programs/bridge/outgoing.ts";
import { FakeController, REQUEST_ID } from "../../support/fake-controller.ts";

const MIB = 1024 * 1024;
const SOME_TIME_MS = 1_700_000_000_000;

describe("the queue of the bridge", () => {
  let controller: FakeController;
  let stop: AbortController;
  let queue: BatchQueue;
  /** The outcomes of acknowledged messages, by number. */
  let outcomes: Map<number, "stored" | "rejected">;

  beforeEach(async () => {
    controller = await FakeController.start();
    stop = new AbortController();
    outcomes = new Map();
    const client = new BridgeClient({ url: controller.url, appName: "bridge", apiKey: "no secret" });
    queue = new BatchQueue({
      signal: stop.signal,
      firstPauseMs: 1,
      async send(batch) {
        const results = await client.deliver(batch);
        for (const [i, { topic, acknowledge }] of batch.entries()) {
          acknowledge();
          outcomes.set(Number(/\d+/.exec(topic)), results[i]?.error === undefined ? "stored" : "rejected");
        }
      },
    });
  });
  afterEach(() => {
    stop.abort();
    controller.close();
  });

  const add = (n: number, text = "") => {
    const payload = Buffer.from(`{"payload":{"n":${n},"text":"${text}"}}`);
    const topic = `agent/${n}/data`;
    const message = toOutgoing({
      topic,
      payload,
      isRetained: false,
      receivedMs: SOME_TIME_MS + n,
      acknowledge: () => {},
    });
    if (message !== undefined) void queue.add(message);
  };
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

  it.each([
    ["401", { status: 401, headers: REQUEST_ID }],
    ["403", { status: 403, headers: REQUEST_ID }],
    ["429", { status: 429, headers: REQUEST_ID }],
    ["503", { status: 503, headers: REQUEST_ID }],
    ["a proxy's 500", { status: 500 }],
    ["a broken connection", "disconnect" as const],
  ])("sends a batch again after %s, and gives up none of its messages", async (_what, response) => {
    const sizes: number[] = [];
    controller.override = (messages) => {
      sizes.push(messages.length);
      return sizes.length <= 8 ? response : undefined;
    };
    for (const n of numbers(5)) add(n);
    await until(() => outcomes.size === 5);
    expect(new Set(sizes)).toEqual(new Set([5]));
    expect(controller.acceptedNumbers()).toEqual(numbers(5));
    expect(new Set(outcomes.values())).toEqual(new Set(["stored"]));
  });

  it("finds every bad message of a batch, and keeps the order of the others", async () => {
    const bad = [0, 7, 8, 399, 400, 999];
    controller.override = (messages) =>
      messages.some(({ received_at, error }) => error === undefined && bad.includes(received_at % 1000))
        ? { status: 422, headers: REQUEST_ID }
        : undefined;
    for (const n of numbers(1000)) add(n);
    await until(() => outcomes.size === 1000);
    expect(numbers(1000).filter((n) => outcomes.get(n) === "rejected")).toEqual(bad);
    expect(controller.acceptedNumbers()).toEqual(numbers(1000).filter((n) => !bad.includes(n)));
    expect(controller.requests).toBeLessThan(bad.length * 25);
  });

  it("limits a batch by the bytes to send, not by the bytes that agents sent", async () => {
    const sizes: number[] = [];
    controller.override = (messages) => {
      sizes.push(messages.length);
      return undefined;
    };
    // 17 KB of control characters become 100 KB of JSON.
    const status = (n: number) =>
      toOutgoing({
        topic: `agent/${n}/status`,
        payload: Buffer.from("\u0001".repeat(17_000)),
        isRetained: false,
        receivedMs: n,
        acknowledge: () => {},
      });
    for (const n of numbers(12)) {
      const message = status(n);
      if (message !== undefined) void queue.add(message);
    }
    await until(() => outcomes.size === 12);
    expect(sizes).toEqual([5, 5, 2]);
  });

  it("gives up no message while the controller fails for every report", async () => {
    let isBroken = true;
    // The controller still accepts rejections.
    controller.override = (messages) =>
      isBroken && messages.some(({ error }) => error === undefined) ? { status: 500, headers: REQUEST_ID } : undefined;
    for (const n of numbers(300)) add(n);
    // The queue has put aside as many messages as it can, and waits.
    await until(() => controller.requests > 215);
    expect(outcomes.size).toBe(0);
    isBroken = false;
    await until(() => outcomes.size === 300, 20_000);
    expect(new Set(outcomes.values())).toEqual(new Set(["stored"]));
  });

  it("delivers other messages without delay, however many make the controller fail", async () => {
    for (const n of numbers(400)) add(n, n % 2 === 0 ? "\\ud800" : "");
    await until(() => controller.acceptedNumbers().length === 200);
    expect(controller.acceptedNumbers()).toEqual(numbers(400).filter((n) => n % 2 === 1));
    // Once the controller accepts others, the queue gives up the bad ones after a few attempts.
    await until(() => outcomes.size === 400, 20_000);
    expect(numbers(400).filter((n) => outcomes.get(n) === "rejected")).toHaveLength(200);
  });
});

describe("the limits of the bridge's queue", () => {
  let stop: AbortController;
  beforeEach(() => {
    stop = new AbortController();
  });
  afterEach(() => stop.abort());
  const outgoing = (n: number, json: string, bytes: number): Outgoing => ({
    ...{ topic: `agent/${n}/data`, apId: String(n), receivedMs: n, json, bytes, acknowledge: () => {} },
  });

  it.each([
    ["10,000 messages", 10_000, 100],
    ["32 MiB", 32, MIB],
  ])("accept %s, and then no more until the service has taken some", async (_what, count, bytes) => {
    const service = Promise.withResolvers<void>();
    const queue = new BatchQueue({ signal: stop.signal, send: () => service.promise });
    for (let n = 1; n < count; n++) expect(queue.add(outgoing(n, "{}", bytes))).toBeUndefined();
    const room = queue.add(outgoing(count, "{}", bytes));
    expect(room).toBeInstanceOf(Promise);
    service.resolve();
    await room;
  });

  it.each([
    ["100 messages", 100, 100],
    ["8 MiB", 8, MIB],
  ])("put %s aside that the service fails at, and give up the oldest for the next", async (_what, count, bytes) => {
    const stored: number[] = [];
    const rejected: number[] = [];
    const queue = new BatchQueue({
      signal: stop.signal,
      // The queue tries none of those put aside again within this test.
      firstPauseMs: 3_600_000,
      async send(batch) {
        if (batch.some(({ json }) => json === "bad")) throw new BatchRejected("the service answered 500", true);
        for (const { receivedMs, rejected: reason } of batch)
          (reason === undefined ? stored : rejected).push(receivedMs);
      },
    });
    for (let n = 0; n <= count; n++) for (const json of ["bad", "good"]) void queue.add(outgoing(n, json, bytes));
    await until(() => stored.length === count + 1);
    expect(rejected).toEqual([0]);
  });
});
