import { env, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { asJsonText } from "../../../src/lib/encoding.ts";
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

const clock = movableClock();
const post = async (job: Job, data = "[]", key?: string) => {
  const [posted] = await job.post([{ type: "agent_data", data: asJsonText(data), key }]);
  return posted;
};

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
