import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Aedes } from "aedes";
import { ClassicLevel } from "classic-level";
import { connectAsync, type MqttClient } from "mqtt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { parseJson } from "../../../src/http/json.ts";
import { Invalid } from "../../../src/lib/errors.ts";
import { BatchQueue, BatchRejected } from "../../../src/programs/bridge/batch-queue.ts";
import { BridgeClient } from "../../../src/programs/bridge/bridge-client.ts";
import { type Outgoing, toOutgoing } from "../../../src/programs/bridge/outgoing.ts";
import { createRejectionLog } from "../../../src/programs/bridge/rejection-log.ts";
import { LISTENING } from "../../../src/programs/bridge/subscriber.ts";
import { BrokerPersistence } from "../../../src/programs/broker/persistence.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { Delivery } from "../../../src/schemas/telemetry.ts";

const MIB = 1024 * 1024;
const SOME_TIME_MS = 1_700_000_000_000;
const REQUEST_ID = { "X-Request-Id": "r" };

type Message = Delivery["messages"][number];
type FakeResponse = { status: number; headers?: Record<string, string> };

/** Responds like the controller: rejects a body by its size or depth, and fails with 500 if the database cannot store a string. */
function respondTo(body: Buffer): FakeResponse & { messages: Message[] } {
  if (body.length > MIB) return { status: 413, headers: REQUEST_ID, messages: [] };
  try {
    const parsed = Delivery.safeParse(parseJson(new Uint8Array(body).buffer).value);
    if (!parsed.success) return { status: 422, headers: REQUEST_ID, messages: [] };
    const { messages } = parsed.data;
    const isStorable = messages.every(({ report }) => !/\\ud[89a-f]/.test(JSON.stringify(report) ?? ""));
    return { status: isStorable ? 200 : 500, headers: REQUEST_ID, messages };
  } catch (error) {
    if (error instanceof Invalid) return { status: 422, headers: REQUEST_ID, messages: [] };
    throw error;
  }
}

describe("the bridge", () => {
  let folder: string;
  let level: ClassicLevel;
  let broker: Aedes;
  let brokerServer: Server;
  let serviceServer: HttpServer;
  let brokerUrl: string;
  let bridge: ChildProcess | undefined;
  let output: string;
  let agent: MqttClient;
  /** The messages that the controller has accepted, in order. */
  let accepted: Message[];
  let requests: number;
  /** Overrides the controller's response to a delivery. */
  let override: (messages: Message[], request: number) => FakeResponse | "disconnect" | undefined;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "bridge-"));
    level = new ClassicLevel(folder);
    await level.open();
    const store = new BrokerPersistence(level, "broker", () => true);
    broker = await Aedes.createBroker({
      id: "broker",
      persistence: store,
      authenticate: (client, _username, _password, done) => {
        store.prepare(client).then(() => done(null, true), done as never);
      },
      authorizePublish: (_client, packet, done) => {
        store.storeBeforeAcknowledging(packet).then(() => done(null), done);
      },
    });
    brokerServer = createServer((socket) => broker.handle(socket));
    await new Promise<void>((resolve) => brokerServer.listen(0, "127.0.0.1", resolve));
    brokerUrl = `mqtt://127.0.0.1:${(brokerServer.address() as AddressInfo).port}`;

    [accepted, requests, output] = [[], 0, ""];
    override = () => undefined;
    serviceServer = createHttpServer(async (request, reply) => {
      const body = await buffer(request);
      if (request.url?.startsWith("/api/v1/token/")) {
        reply.writeHead(200, REQUEST_ID).end(JSON.stringify({ access_token: "token", expires_in: 60 }));
        return;
      }
      const response = respondTo(body);
      const chosen = override(response.messages, ++requests);
      if (chosen === "disconnect") return void request.socket.destroy();
      const { status, headers } = chosen ?? response;
      if (status === 200) accepted.push(...response.messages);
      const results = response.messages.map(({ error }) => (error ? { error } : { accepted: 1, rejected: [] }));
      reply.writeHead(status, headers).end(JSON.stringify({ status: "success", results }));
    });
    await new Promise<void>((resolve) => serviceServer.listen(0, "127.0.0.1", resolve));
    agent = await connectAsync(brokerUrl, { clientId: "agent" });
  });

  afterEach(async () => {
    await stopBridge();
    await agent.endAsync(true);
    await new Promise<void>((resolve) => broker.close(resolve));
    brokerServer.close();
    serviceServer.close();
    serviceServer.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  const startBridge = async (): Promise<void> => {
    const { port } = serviceServer.address() as AddressInfo;
    const child = spawn(process.execPath, [join(ROOT, "scripts/bridge.ts")], {
      env: {
        ...process.env,
        SERVICE_URL: `http://127.0.0.1:${port}`,
        MQTT_URL: brokerUrl,
        BRIDGE_KEY: "no secret",
        BRIDGE_ID: "test",
      },
    });
    bridge = child;
    const before = output.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    await until(() => output.slice(before).includes(LISTENING));
  };
  const stopBridge = async (): Promise<void> => {
    if (bridge === undefined || bridge.exitCode !== null) return;
    const ended = new Promise((resolve) => bridge?.once("exit", resolve));
    bridge.kill("SIGTERM");
    await ended;
  };
  const publish = (topic: string, payload: string) => agent.publishAsync(topic, payload, { qos: 1 });
  const good = (n: number) => publish("agent/good/data", JSON.stringify({ payload: { n } }));
  const acceptedNumbers = () =>
    accepted.flatMap(({ report }) => {
      const n = (report as { payload?: { n?: number } } | undefined)?.payload?.n;
      return n === undefined ? [] : [n];
    });
  /** Returns how many messages the broker still keeps for the bridge. */
  const queued = async () => (await level.keys({ gt: "outgoing:", lt: "outgoing;" }).all()).length;
  const linesWith = (text: string) => output.split("\n").filter((line) => line.includes(text));
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{"n":1}${"}".repeat(levels - 1)}`;

  it("rejects each bad message, and delivers the others in order", async () => {
    const bad: [topic: string, payload: string, reason: string][] = [
      ["agent/surrogate/data", '{"payload":{"text":"\\ud800"}}', "the controller responded with 500"],
      ["agent/deep/data", nested(31), "nested deeper than 29 levels"],
      ["agent/deep-result/result", `{"job_number":"x","data":${nested(30)}}`, "nested deeper than 29 levels"],
      ["agent/very-deep/data", nested(100_000), "nested deeper than 29 levels"],
      ["agent/controls/status", "\u0001".repeat(180_000), "larger than 1 MiB as JSON"],
      ["agent/broken/result", "{", "not JSON"],
      ["agent/a\nforged/data", "{}", "not a topic of an agent"],
    ];
    await startBridge();
    override = (_messages, request) => (request === 1 ? { status: 503, headers: REQUEST_ID } : undefined);
    // The first delivery is retried, so that the others share a batch.
    await good(0);
    for (const [i, [topic, payload]] of bad.entries()) {
      await publish(topic, payload);
      await good(i + 1);
    }
    await until(() => acceptedNumbers().length === bad.length + 1, 10_000);
    expect(acceptedNumbers()).toEqual([0, ...bad.map((_, i) => i + 1)]);
    // The controller gets every rejection, and the broker delivers none of the messages again.
    await until(async () => (await queued()) === 0, 10_000);
    const byText = (a: string, b: string) => (a < b ? -1 : 1);
    const rejections = accepted.flatMap(({ ap_id, error }) => (error === undefined ? [] : [`${ap_id}: ${error}`]));
    expect(rejections.toSorted(byText)).toEqual(
      bad
        .slice(0, -1)
        .map(([topic, , reason]) => `${topic.split("/")[1]}: ${reason}`)
        .toSorted(byText),
    );
    expect(linesWith("message rejected").toSorted(byText)).toEqual(
      bad.map(([topic, , reason]) => `message rejected ${JSON.stringify({ topic, reason })}`).toSorted(byText),
    );
  });

  it("retries a delivery at once if the connection breaks or a proxy responds, and prints nothing", async () => {
    await startBridge();
    override = (_messages, request) => (request === 1 ? "disconnect" : request === 2 ? { status: 502 } : undefined);
    await good(0);
    await until(() => acceptedNumbers().length === 1, 5_000);
    expect(requests).toBe(3);
    expect(output).not.toContain("failed");
  });

  describe("the queue of the bridge", () => {
    let stop: AbortController;
    let queue: BatchQueue;
    /** The outcomes of acknowledged messages, by number. */
    let outcomes: Map<number, "stored" | "rejected">;

    beforeEach(() => {
      stop = new AbortController();
      outcomes = new Map();
      const { port } = serviceServer.address() as AddressInfo;
      const controller = new BridgeClient({ url: `http://127.0.0.1:${port}`, appName: "bridge", apiKey: "no secret" });
      queue = new BatchQueue({
        signal: stop.signal,
        firstPauseMs: 1,
        async send(batch) {
          const results = await controller.deliver(batch);
          for (const [i, { topic, acknowledge }] of batch.entries()) {
            acknowledge();
            outcomes.set(Number(/\d+/.exec(topic)), results[i]?.error === undefined ? "stored" : "rejected");
          }
        },
      });
    });
    afterEach(() => stop.abort());

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
      override = (messages) => {
        sizes.push(messages.length);
        return sizes.length <= 8 ? response : undefined;
      };
      for (const n of numbers(5)) add(n);
      await until(() => outcomes.size === 5);
      expect(new Set(sizes)).toEqual(new Set([5]));
      expect(acceptedNumbers()).toEqual(numbers(5));
      expect(new Set(outcomes.values())).toEqual(new Set(["stored"]));
    });

    it("finds every bad message of a batch, and keeps the order of the others", async () => {
      const bad = [0, 7, 8, 399, 400, 999];
      override = (messages) =>
        messages.some(({ received_at, error }) => error === undefined && bad.includes(received_at % 1000))
          ? { status: 422, headers: REQUEST_ID }
          : undefined;
      for (const n of numbers(1000)) add(n);
      await until(() => outcomes.size === 1000);
      expect(numbers(1000).filter((n) => outcomes.get(n) === "rejected")).toEqual(bad);
      expect(acceptedNumbers()).toEqual(numbers(1000).filter((n) => !bad.includes(n)));
      expect(requests).toBeLessThan(bad.length * 25);
    });

    it("limits a batch by the bytes to send, not by the bytes that agents sent", async () => {
      const sizes: number[] = [];
      override = (messages) => {
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
      override = (messages) =>
        isBroken && messages.some(({ error }) => error === undefined)
          ? { status: 500, headers: REQUEST_ID }
          : undefined;
      for (const n of numbers(300)) add(n);
      // The queue has put aside as many messages as it can, and waits.
      await until(() => requests > 215);
      expect(outcomes.size).toBe(0);
      isBroken = false;
      await until(() => outcomes.size === 300, 20_000);
      expect(new Set(outcomes.values())).toEqual(new Set(["stored"]));
    });

    it("delivers other messages without delay, however many make the controller fail", async () => {
      for (const n of numbers(400)) add(n, n % 2 === 0 ? "\\ud800" : "");
      await until(() => acceptedNumbers().length === 200);
      expect(acceptedNumbers()).toEqual(numbers(400).filter((n) => n % 2 === 1));
      // Once the controller accepts others, the queue gives up the bad ones after a few attempts.
      await until(() => outcomes.size === 400, 20_000);
      expect(numbers(400).filter((n) => outcomes.get(n) === "rejected")).toHaveLength(200);
    });
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

describe("the log of rejected messages", () => {
  it("has 20 lines of limited length, and every minute the number of all other messages", () => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    try {
      const log = createRejectionLog();
      for (let n = 0; n < 23; n++) log.add("t".repeat(1_000), "r".repeat(1_000));
      const line = `message rejected ${JSON.stringify({ topic: "t".repeat(200), reason: "r".repeat(200) })}`;
      expect(lines.mock.calls).toEqual(Array.from({ length: 20 }, () => [line]));
      log.flush();
      expect(lines.mock.calls.slice(20)).toEqual([["3 more messages rejected"]]);
      log.flush();
      log.add("t", "r");
      expect(lines.mock.calls.slice(21)).toEqual([['message rejected {"topic":"t","reason":"r"}']]);
    } finally {
      lines.mockRestore();
    }
  });
});
