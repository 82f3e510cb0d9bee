import { env, runInDurableObject } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createOutbox, outboxInsert } from "../../../src/broker/outbox.ts";
import { outbox } from "../../../src/broker/outbox-table.ts";
import { Publisher } from "../../../src/delivery/publisher.ts";
import { parseEnv } from "../../../src/env.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { settings, uniqueName } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const encryptor = createEncryptor(config.ENCRYPTION_KEY);
const jobStore = createJobStore(database);
const MINUTE_MS = 60_000;

interface TestMessage {
  text: string;
  /** The payload, if it is already encrypted. */
  sealed: string;
  createdMs: number;
  lastsMs: number;
}

/** Inserts a message with its own job into the outbox. */
async function insert(changes: Partial<TestMessage> = {}): Promise<string> {
  const { text = "{}", sealed, createdMs = Date.now(), lastsMs = MINUTE_MS } = changes;
  const jobNumber = crypto.randomUUID();
  const payload = sealed ?? (await encryptor.seal(text, jobNumber));
  await jobStore.insert({ jobNumber, kind: "command", state: "queued", target: null, ownerId: "", owner: "" });
  const message = { jobNumber, part: 1, topic: "emulator_test", payload };
  await outboxInsert(database, message, createdMs, createdMs + lastsMs);
  return jobNumber;
}

const inOutbox = async (jobNumber: string) =>
  (await database.select().from(outbox).where(eq(outbox.jobNumber, jobNumber)))[0];
const isExpired = async (jobNumber: string) =>
  (await env.JOB_STREAM.getByName(jobNumber).describe()).closed === "expired";

/** Runs work with a second publisher on the outbox of the service. */
const withPublisher = <T>(work: (publisher: Publisher, state: DurableObjectState) => Promise<T>, changes = {}) =>
  runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, state) => {
    const result = await work(new Publisher(state, { ...env, ...changes }), state);
    // The publisher of the service handles later messages.
    await state.storage.deleteAlarm();
    return result;
  });

const STALLING = { url: "ws://stalling.test", text: "stalls" };

/** Returns a broker that accepts connections and acknowledges all messages except those with the stalling text. */
function stallingBroker(real: typeof fetch): typeof fetch {
  return async (input, init) => {
    const { hostname } = new URL(input instanceof Request ? input.url : input);
    if (hostname !== "stalling.test") return await real(input, init);
    const { 0: client, 1: server } = new WebSocketPair();
    server.binaryType = "arraybuffer";
    server.accept();
    server.addEventListener("message", ({ data }) => {
      const packet = new Uint8Array(data as ArrayBuffer);
      if (packet[0] === 0x10) server.send(new Uint8Array([0x20, 2, 0, 0]));
      if (packet[0] !== 0x32 || new TextDecoder().decode(packet).endsWith(STALLING.text)) return;
      // The packet id follows the length, which has one byte or more, and the topic.
      const topicAt = packet.findIndex((byte, i) => i > 0 && byte < 0x80) + 1;
      const idAt = topicAt + 2 + new DataView(packet.buffer).getUint16(topicAt);
      server.send(new Uint8Array([0x40, 2, ...packet.slice(idAt, idAt + 2)]));
    });
    return new Response(null, { status: 101, webSocket: client });
  };
}

describe("the publisher", () => {
  it("expires jobs without a result, also during a broker outage", async () => {
    const waiting = await insert();
    const expired = await insert({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm(), { MQTT_URL: "mqtt://127.0.0.1:9" });
    expect(await inOutbox(expired)).toBeUndefined();
    expect(await isExpired(expired)).toBe(true);
    expect(await inOutbox(waiting)).toMatchObject({ jobNumber: waiting });
  });

  it("publishes to the nodes of the broker that are available", async () => {
    const jobNumber = await insert();
    const MQTT_URL = `mqtt://127.0.0.1:9,ws://127.0.0.1:9,${settings.MQTT_URL}`;
    await withPublisher((publisher) => publisher.alarm(), { MQTT_URL });
    expect((await inOutbox(jobNumber))?.published).toBeGreaterThan(0);
  });

  it("expires the other jobs if the object of one job fails", async () => {
    const broken = await insert({ createdMs: Date.now() - 3 * MINUTE_MS });
    await runInDurableObject(env.JOB_STREAM.getByName(broken), (_, { storage }) => {
      storage.sql.exec("CREATE TABLE stream (other)");
    });
    const expired = await insert({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm());
    expect(await isExpired(expired)).toBe(true);
    expect([await inOutbox(broken), await inOutbox(expired)]).toEqual([undefined, undefined]);
  });

  it("publishes the other messages if it cannot decrypt some", async () => {
    const sealedForAnother = await encryptor.seal("{}", uniqueName());
    const undecryptable = await Promise.all(
      Array.from({ length: 120 }, () => insert({ sealed: sealedForAnother, createdMs: Date.now() - 1_000 })),
    );
    const jobNumber = await insert();
    const expired = await insert({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm());
    expect((await inOutbox(jobNumber))?.published).toBeGreaterThan(0);
    expect(await isExpired(expired)).toBe(true);
    // Retries later until the message expires: the operator may restore a lost key.
    const [first] = undecryptable;
    expect((await inOutbox(first ?? ""))?.published).toBe(0);
    expect((await inOutbox(first ?? ""))?.dueAt.getTime()).toBeGreaterThan(Date.now());
    await database.delete(outbox).where(eq(outbox.payload, sealedForAnother));
  });

  it("records acknowledged messages if others time out", async () => {
    const broker = stallingBroker(globalThis.fetch);
    vi.spyOn(globalThis, "fetch").mockImplementation(broker);
    const [quick, slow] = [await insert(), await insert({ text: STALLING.text })];
    await withPublisher((publisher) => publisher.alarm(), { MQTT_URL: STALLING.url });
    vi.restoreAllMocks();
    expect((await inOutbox(quick))?.published).toBeGreaterThan(0);
    expect(await inOutbox(slow)).toMatchObject({ jobNumber: slow });
  });

  it("publishes a message that is inserted at the end of a drain", async () => {
    await withPublisher(async (publisher, { storage }) => {
      const setAlarm = storage.setAlarm.bind(storage);
      let late: string | undefined;
      const spy = vi.spyOn(storage, "setAlarm").mockImplementation(async (at) => {
        await setAlarm(at);
        if (late !== undefined) return;
        late = await insert();
        await publisher.wake();
      });
      await publisher.alarm();
      spy.mockRestore();
      expect((await inOutbox(late ?? ""))?.published).toBeGreaterThan(0);
    });
  });
});

describe("the outbox", () => {
  it.each([
    ["a command until it expires after a minute", MINUTE_MS, MINUTE_MS, [0, 3, 9, 19, 29, 39, 49, 59]],
    ["a spin-up for a day", 24 * 60 * MINUTE_MS, 5 * MINUTE_MS, [0, 3, 9, 21, 45, 93, 153, 213, 273]],
  ])("repeats %s", async (_, lastsMs, watchedMs, expectedS) => {
    // Far in the future, so that the publisher of the service ignores it.
    const createdMs = Date.UTC(2100, 0);
    const jobNumber = await insert({ createdMs, lastsMs });
    const publishedS: number[] = [];
    let nowMs = createdMs;
    const futureOutbox = createOutbox(database, () => nowMs);
    for (; nowMs < createdMs + watchedMs; nowMs += 1_000) {
      const due = (await futureOutbox.due(1_000)).filter((message) => message.jobNumber === jobNumber);
      await futureOutbox.markPublished(due);
      publishedS.push(...due.map(() => (nowMs - createdMs) / 1_000));
    }
    await futureOutbox.withdraw(jobNumber);
    expect(publishedS).toEqual(expectedS);
  });
});
