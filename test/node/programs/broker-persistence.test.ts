import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aedes } from "aedes";
import { ClassicLevel } from "classic-level";
import { connectAsync } from "mqtt";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { until } from "../../../scripts/harness/product.ts";
import { type Incoming, type ListenOptions, listen } from "../../../src/programs/bridge/subscriber.ts";
import { BrokerPersistence } from "../../../src/programs/broker/persistence.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";

let folder: string;
let broker: Aedes;
let server: Server;
let url: string;

beforeEach(async () => {
  // Where aedes begins to count on a connection is left to chance: here always at the same number.
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  folder = mkdtempSync(join(tmpdir(), "broker-store-"));
  const level = new ClassicLevel(folder);
  await level.open();
  const store = new BrokerPersistence(level, "broker", () => true);
  broker = await Aedes.createBroker({
    id: "broker",
    persistence: store,
    authenticate: (client, _username, _password, done) => {
      void store.prepare(client).then(() => done(null, true));
    },
    authorizePublish: (_client, packet, done) => {
      store.storeAhead(packet).then(() => done(null), done);
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

/** A listener as the bridge is one: what it does not acknowledge, it is owed. */
async function hear(options: Partial<ListenOptions> = {}) {
  const heard = new Map<string, Incoming>();
  const stop = new AbortController();
  const subscribed = once(broker, "subscribe");
  const listening = listen({
    url,
    username: "",
    password: "",
    clientId: "listener",
    topics: ["said"],
    signal: stop.signal,
    drained: async () => {},
    onMessage: (message) => {
      heard.set(message.payload.toString(), message);
      return undefined;
    },
    ...options,
  });
  await subscribed;
  return {
    heard,
    async acknowledge(...texts: string[]): Promise<void> {
      const done = texts.map(() => once(broker, "ack"));
      for (const text of texts) heard.get(text)?.acknowledge();
      await Promise.all(done);
    },
    async end(): Promise<void> {
      stop.abort();
      await listening;
    },
  };
}

it("gives the id of a message that is not acknowledged yet to no other one", async () => {
  const speaker = await connectAsync(url, { clientId: "speaker" });
  const say = (...texts: string[]) => Promise.all(texts.map((text) => speaker.publishAsync("said", text, { qos: 1 })));

  const first = await hear();
  await say("a", "b", "c");
  await until(() => first.heard.size === 3);
  await first.end();

  const second = await hear();
  await until(() => second.heard.size === 3);
  await say("d", "e", "f");
  await until(() => second.heard.size === 6);
  await second.acknowledge("a", "b", "c");
  await second.end();

  const third = await hear();
  await until(() => third.heard.size >= 3);
  expect([...third.heard.keys()].sort()).toEqual(["d", "e", "f"]);
  await third.acknowledge("d", "e", "f");
  await third.end();
  await speaker.endAsync();
});

it("keeps the connection of a listener that has no room for more for a while", async () => {
  const speaker = await connectAsync(url, { clientId: "speaker" });
  const room = Promise.withResolvers<void>();
  const heard: string[] = [];
  const ended = vi.fn();
  broker.on("clientDisconnect", ended);
  const listener = await hear({
    keepaliveS: 1,
    onMessage: ({ payload }) => {
      heard.push(payload.toString());
      return room.promise;
    },
  });
  await speaker.publishAsync("said", "a", { qos: 1 });
  await speaker.publishAsync("said", "b", { qos: 1 });
  // Either side would give up after one and a half.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(heard).toEqual(["a"]);
  room.resolve();
  await until(() => heard.length === 2);
  expect(ended).not.toHaveBeenCalled();
  await listener.end();
  await speaker.endAsync();
});
