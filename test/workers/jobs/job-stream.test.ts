import { env, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { asJsonText } from "../../../src/lib/json-text.ts";
import { echoedCloseCode } from "../../../src/schemas/stream-protocol.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, send, signedUp } from "../support.ts";
import {
  alarmOf,
  connect,
  expectNothingLeft,
  type Job,
  movableClock,
  newJob,
  readerOf,
  someReader,
  soon,
  upgrade,
} from "./job-support.ts";

const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;

const clock = movableClock();
const post = (job: Job, data = "[]", key?: string) => job.post({ type: "agent_data", data: asJsonText(data), key });
const ofBytes = (bytes: number) => `["${"x".repeat(bytes - 4)}"]`;

describe("a job's stream", () => {
  it("delivers messages queued before the socket connected, in order, then new ones", async () => {
    const job = newJob();
    expect(await post(job, "[1]")).toEqual({ outcome: "stored", seq: 1, delivered: 0, queued: true });
    await job.post({ type: "status", data: asJsonText('[{"state":"done"}]'), final: true });
    const client = await connect(job);
    expect(await post(job, "[3]")).toEqual({ outcome: "stored", seq: 3, delivered: 1, queued: false });
    await client.receives(3);
    expect(client.messages).toMatchObject([
      { job_number: "job-1", seq: 1, type: "agent_data", final: false, data: [1] },
      { seq: 2, type: "status", final: true, data: [{ state: "done" }] },
      { seq: 3, data: [3] },
    ]);
  });

  it("delivers to every socket, and only the data to a bare one", async () => {
    const job = newJob();
    const [whole, bare] = [await connect(job), await connect(job, { form: "bare" })];
    expect(await post(job, "[1.0]")).toMatchObject({ delivered: 2 });
    await job.post({ type: "status", data: asJsonText("[]") });
    await post(job, "[2]");
    await whole.receives(3);
    await bare.receives(2);
    expect(bare.texts).toEqual(["[1.0]", "[2]"]);
  });

  it("delivers every message once and in order while readers connect", async () => {
    const job = newJob();
    const posts = Array.from({ length: 200 }, (_, i) => post(job, `[${i + 1}]`));
    const clients = await Promise.all(Array.from({ length: 10 }, () => connect(job)));
    await Promise.all([...posts, ...Array.from({ length: 100 }, (_, i) => post(job, `[${i + 201}]`))]);
    for (const client of clients) {
      await client.receives(300);
      expect(client.seqs).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
      expect(client.messages.every(({ seq, data }) => seq === (data as number[])[0])).toBe(true);
    }
  });

  it("applies an acknowledgement to the whole job, by message or on connecting", async () => {
    const job = newJob();
    for (let i = 0; i < 5; i++) await post(job);
    const first = await connect(job);
    await first.receives(5);
    first.send({ ack: 2 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 2);
    const second = await connect(job);
    await second.receives(3);
    expect(second.seqs).toEqual([3, 4, 5]);
    const third = await connect(job, { after: 4 });
    await third.receives(1);
    expect(await job.describe()).toEqual({
      messages: 5,
      retained: 1,
      retainedBytes: 2,
      acknowledgedUpTo: 4,
      sockets: 3,
      closed: undefined,
    });
  });

  it("ignores the acknowledgement of messages that were never sent", async () => {
    const job = newJob();
    await post(job);
    const client = await connect(job, { after: 99 });
    await client.receives(1);
    client.send({ ack: 99 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 1);
    await post(job);
    await client.receives(2);
    expect((await job.describe()).acknowledgedUpTo).toBe(1);
  });

  it("returns the first number for a repeated post, and sends nothing twice", async () => {
    const job = newJob();
    const client = await connect(job);
    await post(job, "[1]", "key");
    expect(await post(job, "[2]", "key")).toEqual({ outcome: "stored", seq: 1, delivered: 1, queued: false });
    await client.receives(1);
    expect(client.messages[0]?.data).toEqual([1]);
  });

  it("keeps its sockets and messages after an eviction", async () => {
    const job = newJob();
    const client = await connect(job);
    await post(job, "[1]", "key");
    await evictDurableObject(job);
    await post(job, "[2]");
    await evictDurableObject(job);
    client.send({ ack: 1 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 1);
    await evictDurableObject(job);
    expect(await post(job, "[1]", "key")).toMatchObject({ seq: 1, delivered: 1 });
    await client.receives(2);
    expect(client.seqs).toEqual([1, 2]);
    expect(await job.describe()).toMatchObject({ messages: 2, retained: 1, acknowledgedUpTo: 1, sockets: 1 });
  });

  it("lets a reader resume after all connections were lost at once", async () => {
    const job = newJob();
    for (let i = 0; i < 3; i++) await post(job);
    const client = await connect(job);
    await client.receives(3);
    await evictDurableObject(job, { webSockets: "close" });
    await soon(() => client.closed !== undefined);
    expect(await post(job)).toEqual({ outcome: "stored", seq: 4, delivered: 0, queued: true });
    const resumed = await connect(job, { after: 2 });
    await resumed.receives(2);
    expect(resumed.seqs).toEqual([3, 4]);
    expect(await job.describe()).toMatchObject({ messages: 4, retained: 2, acknowledgedUpTo: 2, sockets: 1 });
  });

  it("responds to a ping without waking", async () => {
    const job = newJob();
    const client = await connect(job);
    await evictDurableObject(job);
    client.send("ping");
    await client.receives(1);
    expect(client.texts).toEqual(["pong"]);
    await expect(evictDurableObject(job)).rejects.toThrow(/not.*running/i);
  });

  it("returns a client's Close, and keeps serving the other sockets", async () => {
    const job = newJob();
    const [one, other] = [await connect(job), await connect(job)];
    one.disconnect();
    await one.isClosed(1000);
    expect(await post(job)).toMatchObject({ delivered: 1 });
    await other.receives(1);
  });

  it("selects the protocol if it was offered, and never the token next to it", async () => {
    const selected = async (offered: string | null) =>
      (await upgrade(newJob(), {}, offered)).headers.get("Sec-WebSocket-Protocol");
    expect(await selected("job-stream.v1, bearer.abc")).toBe("job-stream.v1");
    expect(await selected("bearer.abc")).toBeNull();
    expect(await selected(null)).toBeNull();
  });

  it("rejects the seventeenth socket until another one closes", async () => {
    const job = newJob();
    const clients = await Promise.all(Array.from({ length: 16 }, () => connect(job)));
    const refused = await upgrade(job);
    expect([refused.status, refused.headers.get("Retry-After"), refused.webSocket]).toEqual([429, "60", null]);
    const crowd = newJob();
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await upgrade(crowd)).status));
    expect(statuses.filter((status) => status === 101).length).toBe(16);
    clients[0]?.disconnect();
    await soon(async () => (await job.describe()).sockets === 15);
    expect((await upgrade(job)).status).toBe(101);
  });

  it("closes a socket whose client sends an unknown message, except a bare one", async () => {
    const job = newJob();
    for (const unknown of [
      "hello",
      "{}",
      { ack: -1 },
      { ack: 1.5 },
      { ack: "1" },
      { ack: 1, more: 1 },
      new ArrayBuffer(4),
    ]) {
      const client = await connect(job);
      client.send(unknown);
      await client.isClosed(1008);
    }
    const large = await connect(job);
    large.send("x".repeat(1_025));
    await large.isClosed(1009);
    const bare = await connect(job, { form: "bare" });
    bare.send("keep-alive");
    await post(job, "[1]");
    await bare.receives(1);
    expect(bare.closed).toBeUndefined();
  });
});

describe("a stream with slow or absent readers", () => {
  it("is full after 1,000 unsent messages, and later reports dropped ones as one gap", async () => {
    const job = newJob();
    await Promise.all(Array.from({ length: 1_000 }, () => post(job)));
    expect(await post(job)).toEqual({ outcome: "full", retryAfterS: 60 });
    const client = await connect(job);
    await client.receives(1_000);
    for (let i = 0; i < 3; i++) expect(await post(job)).toMatchObject({ outcome: "stored", seq: 1_001 + i });
    await client.receives(1_003);
    const late = await connect(job);
    await late.receives(1_001);
    expect(late.messages[0]).toMatchObject({ seq: 3, type: "gap", data: [{ from_seq: 1, to_seq: 3 }] });
    expect(late.seqs).toEqual(Array.from({ length: 1_001 }, (_, i) => i + 3));
    late.send({ ack: 3 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 3);
    const later = await connect(job);
    await later.receives(1_000);
    expect(later.seqs[0]).toBe(4);
  });

  it("closes a slow socket, which can resume, and keeps serving others", async () => {
    const job = newJob();
    const [slow, quick] = [await connect(job), await connect(job)];
    for (let seq = 1; seq <= 16; seq++) {
      expect(await post(job, ofBytes(MIB))).toMatchObject({ delivered: 2 });
      await quick.receives(seq);
      quick.send({ ack: seq });
    }
    await soon(async () => (await job.describe()).retained === 0);
    expect(await post(job, ofBytes(MIB))).toMatchObject({ seq: 17, delivered: 1 });
    await slow.isClosed(1013);
    await quick.receives(17);
    const resumed = await connect(job, { after: 16 });
    await resumed.receives(1);
    expect(resumed.seqs).toEqual([17]);
  });

  it("throttles a producer by how fast readers acknowledge", async () => {
    const job = newJob();
    expect(await job.throttle(MIB)).toEqual({ go: true, pauseMs: 0 });
    const client = await connect(job);
    expect(await job.throttle(MIB)).toEqual({ go: true, pauseMs: 250 });
    await post(job, ofBytes(MIB));
    await client.receives(1);
    client.send({ ack: 1 });
    await soon(async () => (await job.describe()).acknowledgedUpTo === 1);
    await evictDurableObject(job);
    expect(await job.throttle(MIB)).toEqual({ go: true, pauseMs: 0 });
    await post(job, ofBytes(MIB));
    expect(await job.throttle(MIB)).toEqual({ go: false });
  });

  it("expires messages, and reports them as one gap", async () => {
    const job = newJob();
    await post(job);
    await post(job);
    clock.forwardMs += 23 * HOUR_MS;
    await post(job);
    clock.forwardMs += HOUR_MS;
    expect(await runDurableObjectAlarm(job)).toBe(true);
    expect(await job.describe()).toMatchObject({ messages: 3, retained: 1 });
    const client = await connect(job);
    await client.receives(2);
    expect(client.messages).toMatchObject([{ type: "gap", data: [{ from_seq: 1, to_seq: 2 }] }, { seq: 3 }]);
  });
});

describe("access to a stream", () => {
  it("ends exactly when the token expires", async () => {
    const job = newJob();
    const expiresAtMs = Date.now() + 30_000;
    const client = await connect(job, { reader: { ...(await someReader()), expiresAtMs } });
    expect(await alarmOf(job)).toBe(expiresAtMs);
    clock.forwardMs += 30_000;
    await runDurableObjectAlarm(job);
    await client.isClosed(4401);
    const again = await upgrade(job, { reader: { ...(await someReader()), expiresAtMs } });
    expect(again.status).toBe(401);
  });

  it("ends with the token if a message arrives before the alarm", async () => {
    const job = newJob();
    const client = await connect(job, { reader: { ...(await someReader()), expiresAtMs: Date.now() + 3_000 } });
    clock.forwardMs += 3_000;
    expect(await post(job)).toMatchObject({ delivered: 0, queued: true });
    await client.isClosed(4401);
    expect(client.texts).toEqual([]);
  });

  it("ends with the token before a client's acknowledgement counts", async () => {
    const job = newJob();
    await post(job);
    const client = await connect(job, { reader: { ...(await someReader()), expiresAtMs: Date.now() + 3_000 } });
    clock.forwardMs += 3_000;
    client.send({ ack: 1 });
    await client.isClosed(4401);
    expect((await job.describe()).acknowledgedUpTo).toBe(0);
  });

  it("ends within seconds after the account changed, before another message is sent", async () => {
    const job = newJob();
    const account = await signedUp();
    const reader = await readerOf(Promise.resolve(account));
    const [client, other] = [await connect(job, { reader }), await connect(job)];
    await post(job);
    await client.receives(1);
    await send("DELETE", `/api/v1/users/${encodeURIComponent(account.username)}`, undefined, await adminToken());
    clock.forwardMs += 5_001;
    expect(await post(job)).toMatchObject({ delivered: 1 });
    await client.isClosed(4403);
    await other.receives(2);
    expect(client.texts.length).toBe(1);
    expect((await upgrade(job, { reader })).status).toBe(403);
  });

  it("is checked every five minutes while nothing is sent", async () => {
    const job = newJob();
    const account = await signedUp();
    const client = await connect(job, { reader: await readerOf(Promise.resolve(account)) });
    expect((await alarmOf(job)) ?? 0).toBeLessThanOrEqual(Date.now() + 300_000);
    await send("DELETE", `/api/v1/users/${encodeURIComponent(account.username)}`, undefined, await adminToken());
    clock.forwardMs += 300_000;
    await evictDurableObject(job);
    await runDurableObjectAlarm(job);
    await client.isClosed(4403);
  });

  it("ends when the job is cancelled or expires, after the stored messages were delivered", async () => {
    const job = newJob();
    const client = await connect(job);
    await post(job, "[1]");
    await job.close("cancelled");
    await client.isClosed(4410);
    await client.receives(1);
    expect(await post(job)).toEqual({ outcome: "closed", state: "cancelled" });
    await job.close("expired");
    expect((await job.describe()).closed).toBe("cancelled");
    const late = await connect(job);
    await late.isClosed(4410);
    await late.receives(1);
  });
});

describe("a client's Close", () => {
  it.each([
    [1000, 1000],
    [1001, 1001],
    [4999, 4999],
    [0, 1000],
    [999, 1000],
    [1005, 1000],
    [5000, 1000],
    [65535, 1000],
  ])("with code %d is returned with code %d", (code, echoed) => {
    expect(echoedCloseCode(code)).toBe(echoed);
  });
});

describe("a stream's update of the job store", () => {
  it("happens once an hour, even if the object slept in between", async () => {
    const job = newJob();
    const jobStore = createJobStore(createDatabase({ url: parseEnv(env).LIBSQL_URL }));
    const jobNumber = job.name ?? "";
    await jobStore.insert({ jobNumber, kind: "stream", state: "running", target: null, ownerId: "x", owner: "user:x" });
    await post(job);
    const updatedMs = async () => (await jobStore.find(jobNumber))?.updatedAt.getTime() ?? 0;
    const nextAlarm = async (forwardMs: number) => {
      clock.forwardMs += forwardMs;
      await evictDurableObject(job);
      await runDurableObjectAlarm(job);
      return await updatedMs();
    };
    const first = await nextAlarm(HOUR_MS);
    expect(await nextAlarm(HOUR_MS / 12)).toBe(first);
    expect(await nextAlarm(HOUR_MS)).toBeGreaterThan(first + HOUR_MS);
  });
});

describe("the end of a stream", () => {
  it("leaves no storage if the object was only read", async () => {
    const job = newJob();
    await job.describe();
    await job.throttle(1);
    await expectNothingLeft(job);
  });

  it("leaves no storage after a socket that received nothing", async () => {
    const job = newJob();
    const client = await connect(job);
    expect(await alarmOf(job)).not.toBeNull();
    client.disconnect();
    await soon(async () => (await alarmOf(job)) === null);
    await expectNothingLeft(job);
  });

  it("happens 24 hours after the last message, and leaves no storage", async () => {
    const job = newJob();
    await post(job);
    clock.forwardMs += 24 * HOUR_MS - 1_000;
    await runDurableObjectAlarm(job);
    expect((await job.describe()).messages).toBe(1);
    expect(await alarmOf(job)).toBeGreaterThan(Date.now());
    clock.forwardMs += 1_000;
    await runDurableObjectAlarm(job);
    await expectNothingLeft(job);
  });

  it("happens 24 hours after the last socket closed, never while one is open", async () => {
    const job = newJob();
    await post(job);
    const client = await connect(job);
    for (let hours = 0; hours < 48; hours += 6) {
      clock.forwardMs += 6 * HOUR_MS;
      await runDurableObjectAlarm(job);
    }
    client.disconnect();
    await soon(async () => (await job.describe()).sockets === 0);
    clock.forwardMs += 23 * HOUR_MS;
    await runDurableObjectAlarm(job);
    expect(await post(job)).toMatchObject({ seq: 2 });
    clock.forwardMs += 24 * HOUR_MS;
    await runDurableObjectAlarm(job);
    await expectNothingLeft(job);
    expect(await post(job)).toMatchObject({ seq: 1 });
  });

  it("is counted from the time when the last socket closed, even without an alarm before", async () => {
    const job = newJob();
    await post(job);
    const client = await connect(job);
    clock.forwardMs += 23 * HOUR_MS;
    client.disconnect();
    await soon(async () => (await job.describe()).sockets === 0);
    clock.forwardMs += 23 * HOUR_MS;
    await runDurableObjectAlarm(job);
    expect(await job.describe()).toMatchObject({ messages: 1, retained: 0 });
  });
});
