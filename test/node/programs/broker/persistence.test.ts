import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aedes } from "aedes";
import { ClassicLevel } from "classic-level";
import { connectAsync } from "mqtt";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../../scripts/harness/product.ts";
import { type Incoming, type SubscribeOptions, subscribe } from "../../../../src/programs/bridge/subscriber.ts";
import { DiskPersistence } from "../../../../src/programs/broker/disk-persistence.ts";
import { anyFreePort } from "../../../../src/programs/stack/ports.ts";

let folder: string;
let broker: Aedes;
let server: Server;
let url: string;

beforeEach(async () => {
  // aedes starts the message ids of a connection at a random number. Here it is always the same.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  folder = mkdtempSync(join(tmpdir(), "broker-store-"));
  const level = new ClassicLevel(folder);
  await level.open();
  const store = new DiskPersistence(level, "broker", () => true);
  broker = await Aedes.createBroker({
    id: "broker",
    persistence: store,
    authenticate: (client, _username, _password, done) => {
      void store.prepare(client).then(() => done(null, true));
    },
    authorizePublish: (_client, packet, done) => {
      store.storeBeforeAcknowledging(packet).then(() => done(null), done);
    },
  });
  server = createServer((socket) => broker.handle(socket));
  const port = await anyFreePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  url = `mqtt://127.0.0.1:${port}`;
});

afterEach(async () => {
  await new Promise<void>((resolve) => broker.close(resolve));
  server.close();
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

/** Subscribes like the bridge: the broker keeps messages until they are acknowledged. */
async function startSubscriber(options: Partial<SubscribeOptions> = {}) {
  const received = new Map<string, Incoming>();
  const stop = new AbortController();
  const subscribed = once(broker, "subscribe");
  const subscription = subscribe({
    url,
    username: "",
    password: "",
    clientId: "subscriber",
    topics: ["topic"],
    signal: stop.signal,
    drained: async () => {},
    onMessage: (message) => {
      received.set(message.payload.toString(), message);
      return undefined;
    },
    ...options,
  });
  await subscribed;
  return {
    received,
    async acknowledge(...texts: string[]): Promise<void> {
      const done = texts.map(() => once(broker, "ack"));
      for (const text of texts) received.get(text)?.acknowledge();
      await Promise.all(done);
    },
    async end(): Promise<void> {
      stop.abort();
      await subscription;
    },
  };
}

describe("the persistence of the broker", () => {
  it("does not reuse the id of an unacknowledged message", async () => {
    const publisher = await connectAsync(url, { clientId: "publisher" });
    const publish = (...texts: string[]) =>
      Promise.all(texts.map((text) => publisher.publishAsync("topic", text, { qos: 1 })));

    const first = await startSubscriber();
    await publish("a", "b", "c");
    await until(() => first.received.size === 3);
    await first.end();

    const second = await startSubscriber();
    await until(() => second.received.size === 3);
    await publish("d", "e", "f");
    await until(() => second.received.size === 6);
    await second.acknowledge("a", "b", "c");
    await second.end();

    const third = await startSubscriber();
    await until(() => third.received.size >= 3);
    expect([...third.received.keys()].sort()).toEqual(["d", "e", "f"]);
    await third.acknowledge("d", "e", "f");
    await third.end();
    await publisher.endAsync();
  });

  it("does not store an invalid filter that a client sends together with a valid one: it could not connect again", async () => {
    const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
    const text = (value: string) => Buffer.concat([Buffer.from([0, value.length]), Buffer.from(value)]);
    const packet = (type: number, ...parts: Buffer[]) => {
      const body = Buffer.concat(parts);
      return Buffer.concat([Buffer.from([type, body.length]), body]);
    };
    const [version, persistent, keepAlive, messageId, qos] = [[4], [0], [0, 60], [0, 1], [1]].map((bytes) =>
      Buffer.from(bytes),
    ) as [Buffer, Buffer, Buffer, Buffer, Buffer];
    const closed = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
    const ready = once(broker, "clientReady");
    socket.write(packet(0x10, text("MQTT"), version, persistent, keepAlive, text("subscriber")));
    await ready;
    socket.write(packet(0x82, messageId, text("topic"), qos, text("abc+/d"), qos));
    // The broker closes the connection because of the invalid filter.
    socket.resume();
    await closed;

    const subscriber = await startSubscriber();
    const publisher = await connectAsync(url, { clientId: "publisher" });
    await publisher.publishAsync("topic", "a", { qos: 1 });
    await until(() => subscriber.received.size === 1);
    await subscriber.acknowledge("a");
    await subscriber.end();
    await publisher.endAsync();
  });

  it("keeps the connection of a subscriber that reads nothing for a while", async () => {
    const publisher = await connectAsync(url, { clientId: "publisher" });
    const room = Promise.withResolvers<void>();
    const received: string[] = [];
    const ended = vi.fn();
    broker.on("clientDisconnect", ended);
    const subscriber = await startSubscriber({
      keepaliveS: 1,
      onMessage: ({ payload }) => {
        received.push(payload.toString());
        return room.promise;
      },
    });
    await publisher.publishAsync("topic", "a", { qos: 1 });
    await publisher.publishAsync("topic", "b", { qos: 1 });
    // Without pings, either side would close the connection after 1.5 s.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(received).toEqual(["a"]);
    room.resolve();
    await until(() => received.length === 2);
    expect(ended).not.toHaveBeenCalled();
    await subscriber.end();
    await publisher.endAsync();
  });
});
