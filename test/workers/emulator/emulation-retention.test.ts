import { env, runInDurableObject } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { audit } from "../../../src/accounts/account-tables.ts";
import { Publisher } from "../../../src/delivery/publisher.ts";
import { emulations } from "../../../src/emulator/emulation-tables.ts";
import { parseEnv } from "../../../src/env.ts";
import { jobs } from "../../../src/jobs/job-table.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, bearer, newApp, postJson, send, signedUp, uniqueName } from "../support.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const HOUR_MS = 3_600_000;

async function spinUp(token: string, num_access_points = 2): Promise<{ jobNumber: string; apIds: string[] }> {
  const spec = { access_point_type: "LiFi", num_access_points, locations: ["1,1"], num_devices: 1, duration: 60 };
  const response = await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, token);
  expect(response.status).toBe(200);
  const { job_number, ap_ids } = (await response.json()) as { job_number: string; ap_ids: string[] };
  return { jobNumber: job_number, apIds: ap_ids };
}
const remove = async (jobNumber: string, token: string) => {
  const response = await send("DELETE", `/api/v1/emulator/${jobNumber}`, undefined, token);
  return { status: response.status, detail: ((await response.json()) as { detail: string }).detail };
};
const statusOf = async (apId: string | undefined) =>
  (await send("GET", `/api/v1/agents/${apId}`, undefined, await adminToken())).status;
const ofJob = (jobNumber: string) => eq(emulations.jobNumber, jobNumber);
const emulationOf = async (jobNumber: string) => (await database.select().from(emulations).where(ofJob(jobNumber)))[0];
const jobOf = async (jobNumber: string) => (await database.select().from(jobs).where(eq(jobs.jobNumber, jobNumber)))[0];
/** Deletes a job, as `JobStream` does at the end of the job's retention. */
const deleteJob = (jobNumber: string) => database.delete(jobs).where(eq(jobs.jobNumber, jobNumber));
const setEndedAgo = (jobNumber: string, ms: number) =>
  database
    .update(emulations)
    .set({ endedAt: new Date(Date.now() - ms) })
    .where(ofJob(jobNumber));
const reportDone = async (jobNumber: string) => {
  const { token } = await newApp({ callbacks: true });
  const item = { emulator: "e", part: 1, state: "done" };
  const response = await postJson(`/api/v1/callback/emulator?job_number=${jobNumber}`, [item], bearer(token));
  expect(response.status).toBe(200);
};
const entriesOf = async (jobNumber: string) =>
  (
    await database
      .select()
      .from(audit)
      .where(eq(audit.object, `job:${jobNumber}`))
  ).map(({ actor, action }) => `${actor} ${action}`);

/** Runs the alarm of a new publisher. */
const sweep = () =>
  runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, state) => {
    await new Publisher(state, env).alarm();
    await state.storage.deleteAlarm();
  });

describe("removing an emulation", () => {
  it("is allowed to its owner and administrators only, also repeatedly and after the job was deleted", async () => {
    const [owner, other] = await Promise.all([signedUp(), signedUp()]);
    const { jobNumber, apIds } = await spinUp(owner.token);
    await reportDone(jobNumber);
    await deleteJob(jobNumber);
    expect((await remove(jobNumber, other.token)).status).toBe(403);
    expect(await remove(jobNumber, owner.token)).toEqual({ status: 200, detail: "2 agents removed" });
    expect(await statusOf(apIds[0])).toBe(404);
    expect(await remove(jobNumber, owner.token)).toEqual({ status: 200, detail: "0 agents removed" });
    expect(await remove(jobNumber, await adminToken())).toEqual({ status: 200, detail: "0 agents removed" });
    expect((await entriesOf(jobNumber)).filter((entry) => entry.endsWith("remove emulated agents"))).toEqual([
      `user:${owner.username} remove emulated agents`,
    ]);
    expect((await remove(uniqueName(), owner.token)).status).toBe(404);
  });

  it("removes agents in several batches, and agents whose configuration was replaced", async () => {
    const { token } = await signedUp();
    const { jobNumber, apIds } = await spinUp(token, 501);
    const change = { configuration: { note: "replaced" } };
    expect((await send("PUT", `/api/v1/agents/${apIds[0]}`, change, await adminToken())).status).toBe(200);
    expect(await remove(jobNumber, token)).toEqual({ status: 200, detail: "501 agents removed" });
  });
});

describe("the retention of emulated access points", () => {
  it("starts at the end of the emulation; at its end the service removes them and audits it once", async () => {
    const { token } = await signedUp();
    const [ended, kept, running] = await Promise.all([spinUp(token), spinUp(token), spinUp(token)]);
    await Promise.all([reportDone(ended.jobNumber), reportDone(kept.jobNumber)]);
    await sweep();
    expect((await emulationOf(running.jobNumber))?.endedAt).toBeNull();
    const endedAt = (await emulationOf(ended.jobNumber))?.endedAt;
    expect(endedAt).toEqual((await jobOf(ended.jobNumber))?.updatedAt);
    await setEndedAgo(ended.jobNumber, 25 * HOUR_MS);
    await setEndedAgo(kept.jobNumber, 23 * HOUR_MS);
    await sweep();
    await sweep();
    expect(await Promise.all([ended, kept, running].map(({ apIds }) => statusOf(apIds[1])))).toEqual([404, 200, 200]);
    expect((await entriesOf(ended.jobNumber)).filter((entry) => entry.startsWith("service:"))).toEqual([
      "service:retention remove emulated agents",
    ]);
    expect(await remove(ended.jobNumber, token)).toEqual({ status: 200, detail: "0 agents removed" });
  });

  it("also starts if the job was cancelled or deleted", async () => {
    const { token } = await signedUp();
    const [cancelled, deleted] = await Promise.all([spinUp(token), spinUp(token)]);
    expect((await send("DELETE", `/api/v1/jobs/${cancelled.jobNumber}`, undefined, token)).status).toBe(200);
    await deleteJob(deleted.jobNumber);
    await sweep();
    expect((await emulationOf(cancelled.jobNumber))?.endedAt).not.toBeNull();
    expect((await emulationOf(deleted.jobNumber))?.endedAt).not.toBeNull();
  });

  it("fails a job whose emulator never reported its end", async () => {
    const { token } = await signedUp();
    const { jobNumber } = await spinUp(token);
    await database
      .update(emulations)
      .set({ endsAt: new Date(Date.now() - 1) })
      .where(ofJob(jobNumber));
    await sweep();
    expect(await jobOf(jobNumber)).toMatchObject({ state: "failed", detail: "No emulator reported its end" });
    expect((await emulationOf(jobNumber))?.endedAt).not.toBeNull();
  });

  it("covers agents that are older than the table, whose owner is known while the job exists", async () => {
    const { username, token } = await signedUp();
    const [deleted, running] = await Promise.all([spinUp(token), spinUp(token)]);
    for (const { jobNumber } of [deleted, running]) await database.delete(emulations).where(ofJob(jobNumber));
    await deleteJob(deleted.jobNumber);
    await sweep();
    expect(await emulationOf(running.jobNumber)).toMatchObject({
      owner: `user:${username}`,
      accessPoints: 2,
      endedAt: null,
    });
    expect(await emulationOf(deleted.jobNumber)).toMatchObject({ owner: "", endedAt: expect.any(Date) });
    expect((await remove(deleted.jobNumber, token)).status).toBe(403);
    await setEndedAgo(deleted.jobNumber, 25 * HOUR_MS);
    await sweep();
    expect([await statusOf(deleted.apIds[0]), await statusOf(running.apIds[0])]).toEqual([404, 200]);
  });

  it("ends with the deletion of the emulation 30 days after the removal", async () => {
    const { token } = await signedUp();
    const { jobNumber } = await spinUp(token, 1);
    await remove(jobNumber, token);
    await deleteJob(jobNumber);
    const statusAfter = async (days: number) => {
      const removedAt = new Date(Date.now() - days * 24 * HOUR_MS);
      await database.update(emulations).set({ removedAt }).where(ofJob(jobNumber));
      await sweep();
      return (await remove(jobNumber, token)).status;
    };
    expect([await statusAfter(29), await statusAfter(31)]).toEqual([200, 404]);
  });
});
