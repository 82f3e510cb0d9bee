import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Aedes, type AedesPublishPacket, type Client } from "aedes";
import { ClassicLevel } from "classic-level";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../../scripts/harness/product.ts";
import { DiskPersistence } from "../../../../src/programs/broker/disk-persistence.ts";
import { DiskSessions } from "../../../../src/programs/broker/disk-sessions.ts";
import { AGENT_SESSION_MS, SERVICE_SESSION_MS, SESSIONS_PER_AGENT } from "../../../../src/programs/broker/limits.ts";

const TOPIC = "agent/a/command";

describe("the broker's persistent sessions", () => {
  let folder: string;
  let level: ClassicLevel;
  let broker: Aedes;
  let store: DiskPersistence;
  let sessions: DiskSessions;
  let nowMs: number;
  let sent: number;
  let disconnected: string[];

  /** Starts a broker on the data of the one before it. */
  const start = async (id: string): Promise<void> => {
    level = new ClassicLevel(folder);
    await level.open();
    const limit = { messages: 10, bytes: 1_000 };
    store = new DiskPersistence(
      level,
      id,
      () => true,
      () => limit,
    );
    broker = await Aedes.createBroker({ id, persistence: store });
    sessions = new DiskSessions(level, store, {
      disconnect: (clientId) => void disconnected.push(clientId),
      now: () => nowMs,
    });
    await sessions.load();
  };
  const stop = async (): Promise<void> => {
    await new Promise<void>((resolve) => broker.close(resolve));
    await level.close();
  };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "broker-sessions-"));
    [nowMs, sent, disconnected] = [Date.now(), 0, []];
    await start("broker-1");
  });
  afterEach(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const clientOf = (id: string) => ({ id }) as Client;
  /** Connects, subscribes and, unless the client stays, disconnects. */
  const connect = async (id: string, stays = false): Promise<void> => {
    const connection = {};
    await sessions.open(id, false, connection);
    await store.addSubscriptions(clientOf(id), [{ topic: TOPIC, qos: 1 }] as never);
    if (!stays) await sessions.close(id, connection);
  };
  const publish = async (payload: string): Promise<void> => {
    const packet = { cmd: "publish", topic: TOPIC, payload: Buffer.from(payload), qos: 1, retain: false, dup: false };
    const stamped = { ...packet, brokerId: "broker-1", brokerCounter: ++sent } as AedesPublishPacket;
    await store.outgoingEnqueueCombi(await store.subscriptionsByTopic(TOPIC), stamped);
  };
  const queuedFor = async (id: string): Promise<string[]> => {
    const packets = (await store.outgoingStream({ id }).toArray()) as AedesPublishPacket[];
    return packets.map(({ payload }) => payload.toString());
  };
  const subscribers = async () => (await store.subscriptionsByTopic(TOPIC)).map(({ clientId }) => clientId).toSorted();
  const keysWith = async (text: string) => (await level.keys().all()).filter((key) => key.includes(text));

  it("expire with their messages: those of an agent after a day, those of a service after a week", async () => {
    await connect("agent/a/1");
    await connect("bridge-1");
    await publish("x");
    nowMs += AGENT_SESSION_MS;
    await sessions.removeExpired();
    expect(await queuedFor("agent/a/1")).toEqual(["x"]);
    nowMs += 1;
    await sessions.removeExpired();
    expect(await subscribers()).toEqual(["bridge-1"]);
    expect(await keysWith("agent%2Fa%2F1")).toEqual([]);
    expect(await queuedFor("bridge-1")).toEqual(["x"]);
    nowMs += SERVICE_SESSION_MS;
    await sessions.removeExpired();
    expect(await keysWith("bridge-1")).toEqual([]);
  });

  it("expire across restarts, even if the client was connected when the broker was killed", async () => {
    await connect("agent/a/left");
    await connect("agent/a/connected", true);
    await publish("x");
    nowMs += AGENT_SESSION_MS / 2;
    await stop();
    await start("broker-2");
    nowMs += AGENT_SESSION_MS / 2 + 1;
    await sessions.removeExpired();
    expect(await subscribers()).toEqual(["agent/a/connected"]);
    nowMs += AGENT_SESSION_MS / 2;
    await stop();
    await start("broker-3");
    expect(await subscribers()).toEqual([]);
    expect(await keysWith("agent%2Fa")).toEqual([]);
  });

  it("expire if an earlier version created them", async () => {
    await store.addSubscriptions(clientOf("agent/a/old"), [{ topic: TOPIC, qos: 1 }] as never);
    await publish("x");
    await stop();
    await start("broker-2");
    expect([...(await sessions.owners())]).toEqual(["a"]);
    nowMs += AGENT_SESSION_MS + 1;
    await sessions.removeExpired();
    expect(await keysWith("agent%2Fa")).toEqual([]);
  });

  it("do not expire while their client is connected, even if an older connection of it was closed", async () => {
    const [older, newer] = [{}, {}];
    await sessions.open("agent/a/1", false, older);
    await sessions.open("agent/a/1", false, newer);
    await sessions.close("agent/a/1", older);
    nowMs += AGENT_SESSION_MS + 1;
    await sessions.removeExpired();
    expect([...(await sessions.owners())]).toEqual(["a"]);
  });

  it("are removed if their agent has too many: the one that was unused for longest first", async () => {
    await connect("agent/a/connected", true);
    for (let n = 1; n < SESSIONS_PER_AGENT; n++) {
      nowMs += 1_000;
      await connect(`agent/a/${n}`);
    }
    await connect("agent/b/1");
    nowMs += 1_000;
    await connect("agent/a/new");
    expect(await subscribers()).toEqual(["agent/a/2", "agent/a/3", "agent/a/connected", "agent/a/new", "agent/b/1"]);
    expect(disconnected).toEqual([]);
    for (let n = 1; n <= SESSIONS_PER_AGENT; n++) await connect(`agent/a/stays-${n}`, true);
    expect(disconnected).toEqual(["agent/a/connected"]);
  });

  it("are removed when the client requests a clean session, or when its agent is deleted", async () => {
    await connect("agent/a/1");
    await connect("agent/a/2");
    await publish("x");
    await sessions.open("agent/a/1", true, {});
    expect(await subscribers()).toEqual(["agent/a/2"]);
    await sessions.removeAgent("a");
    expect(await keysWith("agent%2Fa")).toEqual([]);
    expect([...(await sessions.owners())]).toEqual([]);
  });

  it.each([
    ["messages", "x", 10],
    ["bytes", "x".repeat(400), 2],
  ])("keep the newest messages, up to a limit of %s", async (_what, text, max) => {
    await connect("agent/a/1");
    for (let n = 10; n < 60; n++) {
      await publish(`${n} ${text}`);
      // The queue is shortened in the background.
      await until(async () => (await queuedFor("agent/a/1")).length <= max);
    }
    const queued = (await queuedFor("agent/a/1")).map((payload) => Number(payload.split(" ")[0]));
    expect(queued.at(-1)).toBe(59);
    expect(queued).toEqual(queued.map((_, i) => 60 - queued.length + i));
  });
});
