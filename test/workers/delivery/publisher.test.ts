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
import { uniqueName } from "../support.ts";

const config = parseEnv(env);
const database = createDatabase({ url: config.LIBSQL_URL });
const encryptor = createEncryptor(config.ENCRYPTION_KEY);
const index = createJobStore(database);
const MINUTE_MS = 60_000;

interface Put {
  text: string;
  /** Where it is sealed already. */
  sealed: string;
  createdMs: number;
  lastsMs: number;
}

/** Puts a message into the outbox, as belonging to a job of its own. */
async function put(over: Partial<Put> = {}): Promise<string> {
  const { text = "{}", sealed, createdMs = Date.now(), lastsMs = MINUTE_MS } = over;
  const jobNumber = crypto.randomUUID();
  const payload = sealed ?? (await encryptor.seal(text, jobNumber));
  await index.insert({ jobNumber, kind: "command", state: "queued", target: null, ownerId: "", owner: "" });
  const message = { jobNumber, part: 1, topic: "emulator_test", payload };
  await outboxInsert(database, message, createdMs, createdMs + lastsMs);
  return jobNumber;
}

const inOutbox = async (jobNumber: string) =>
  (await database.select().from(outbox).where(eq(outbox.jobNumber, jobNumber)))[0];
const isExpired = async (jobNumber: string) =>
  (await env.JOB_STREAM.getByName(jobNumber).describe()).closed === "expired";

/** Another publisher than the service's own, which shares its outbox. */
const withPublisher = <T>(work: (publisher: Publisher, state: DurableObjectState) => Promise<T>, changes = {}) =>
  runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, state) => {
    const result = await work(new Publisher(state, { ...env, ...changes }), state);
    // It has done its part, and leaves what comes later to others.
    await state.storage.deleteAlarm();
    return result;
  });

const STALLING = { url: "ws://stalling.test", text: "stalls" };

/** A broker that greets, and acknowledges all messages but those that it stalls at. */
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
      // Behind a length of one byte or more and the topic stands what is to be acknowledged.
      const topicAt = packet.findIndex((byte, i) => i > 0 && byte < 0x80) + 1;
      const idAt = topicAt + 2 + new DataView(packet.buffer).getUint16(topicAt);
      server.send(new Uint8Array([0x40, 2, ...packet.slice(idAt, idAt + 2)]));
    });
    return new Response(null, { status: 101, webSocket: client });
  };
}

describe("the publisher", () => {
  it("ends what nobody has answered in time, also while the broker is away", async () => {
    const waiting = await put();
    const over = await put({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm(), { MQTT_URL: "mqtt://127.0.0.1:9" });
    expect(await inOutbox(over)).toBeUndefined();
    expect(await isExpired(over)).toBe(true);
    expect(await inOutbox(waiting)).toMatchObject({ jobNumber: waiting });
  });

  it("ends the others, though one job's object fails at it", async () => {
    const broken = await put({ createdMs: Date.now() - 3 * MINUTE_MS });
    await runInDurableObject(env.JOB_STREAM.getByName(broken), (_, { storage }) => {
      storage.sql.exec("CREATE TABLE stream (other)");
    });
    const over = await put({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm());
    expect(await isExpired(over)).toBe(true);
    expect([await inOutbox(broken), await inOutbox(over)]).toEqual([undefined, undefined]);
  });

  it("publishes what it can, though there are messages that it cannot open", async () => {
    const sealedForAnother = await encryptor.seal("{}", uniqueName());
    const former = await Promise.all(
      Array.from({ length: 120 }, () => put({ sealed: sealedForAnother, createdMs: Date.now() - 1_000 })),
    );
    const jobNumber = await put();
    const over = await put({ createdMs: Date.now() - 2 * MINUTE_MS });
    await withPublisher((publisher) => publisher.alarm());
    expect((await inOutbox(jobNumber))?.published).toBeGreaterThan(0);
    expect(await isExpired(over)).toBe(true);
    // Not at once again, and until its time is over: whoever has lost a key may find it.
    const [closed] = former;
    expect((await inOutbox(closed ?? ""))?.published).toBe(0);
    expect((await inOutbox(closed ?? ""))?.dueAt.getTime()).toBeGreaterThan(Date.now());
    await database.delete(outbox).where(eq(outbox.payload, sealedForAnother));
  });

  it("counts what a broker has acknowledged, though others take too long", async () => {
    const broker = stallingBroker(globalThis.fetch);
    vi.spyOn(globalThis, "fetch").mockImplementation(broker);
    const [quick, slow] = [await put(), await put({ text: STALLING.text })];
    await withPublisher((publisher) => publisher.alarm(), { MQTT_URL: STALLING.url });
    vi.restoreAllMocks();
    expect((await inOutbox(quick))?.published).toBeGreaterThan(0);
    expect(await inOutbox(slow)).toMatchObject({ jobNumber: slow });
  });

  it("hears also of what comes when it is all but done", async () => {
    await withPublisher(async (publisher, { storage }) => {
      const setAlarm = storage.setAlarm.bind(storage);
      let late: string | undefined;
      const spy = vi.spyOn(storage, "setAlarm").mockImplementation(async (at) => {
        await setAlarm(at);
        if (late !== undefined) return;
        late = await put();
        await publisher.nudge();
      });
      await publisher.alarm();
      spy.mockRestore();
      expect((await inOutbox(late ?? ""))?.published).toBeGreaterThan(0);
    });
  });
});

describe("the outbox", () => {
  it.each([
    ["a command, until its minute is over", MINUTE_MS, MINUTE_MS, [0, 3, 9, 19, 29, 39, 49, 59]],
    ["a spin-up, for a day", 24 * 60 * MINUTE_MS, 5 * MINUTE_MS, [0, 3, 9, 21, 45, 93, 153, 213, 273]],
  ])("repeats %s", async (_, lastsMs, watchedMs, expectedS) => {
    // So far ahead that the service's own publisher does not come to it.
    const createdMs = Date.UTC(2100, 0);
    const jobNumber = await put({ createdMs, lastsMs });
    const publishedS: number[] = [];
    let nowMs = createdMs;
    const ahead = createOutbox(database, () => nowMs);
    for (; nowMs < createdMs + watchedMs; nowMs += 1_000) {
      const due = (await ahead.due(1_000)).filter((message) => message.jobNumber === jobNumber);
      await ahead.markPublished(due);
      publishedS.push(...due.map(() => (nowMs - createdMs) / 1_000));
    }
    await ahead.withdraw(jobNumber);
    expect(publishedS).toEqual(expectedS);
  });
});
