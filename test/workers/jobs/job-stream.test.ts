import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { asJsonText } from "../../../src/lib/encoding.ts";
import { echoedCloseCode } from "../../../src/schemas/stream-protocol.ts";
import { connect, type Job, movableClock, newJob, soon, upgrade } from "./job-support.ts";

const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;

const clock = movableClock();
const post = async (job: Job, data = "[]", key?: string) => {
  const [posted] = await job.post([{ type: "agent_data", data: asJsonText(data), key }]);
  return posted;
};
const ofBytes = (bytes: number) => `["${"x".repeat(bytes - 4)}"]`;

describe("a job's stream", () => {
  it("delivers messages queued before the socket connected, in order, then new ones", async () => {
    const job = newJob();
    expect(await post(job, "[1]")).toEqual({ outcome: "stored", seq: 1, delivered: 0, queued: true });
    await job.post([{ type: "status", data: asJsonText('[{"state":"done"}]'), final: true }]);
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
    await job.post([{ type: "status", data: asJsonText("[]") }]);
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
    const responses = await Promise.all(Array.from({ length: 20 }, () => upgrade(crowd)));
    const sockets = responses.flatMap(({ webSocket }) => webSocket ?? []);
    expect(sockets).toHaveLength(16);
    // Uses the sockets again: the garbage collector closes those that nothing refers to, and others would take their places.
    for (const socket of sockets) socket.accept();
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
