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
/** As `JobStream` does when a job's own retention has ended. */
const forgetJob = (jobNumber: string) => database.delete(jobs).where(eq(jobs.jobNumber, jobNumber));
const endedAgo = (jobNumber: string, ms: number) =>
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

/** The alarm of a publisher that was just started. */
const sweep = () =>
  runInDurableObject(env.PUBLISHER.getByName(uniqueName()), async (_, state) => {
    await new Publisher(state, env).alarm();
    await state.storage.deleteAlarm();
  });

describe("removing an emulation", () => {
  it("works for its owner and administrators after the job is gone, and again, and for no one else", async () => {
    const [owner, other] = await Promise.all([signedUp(), signedUp()]);
    const { jobNumber, apIds } = await spinUp(owner.token);
    await reportDone(jobNumber);
    await forgetJob(jobNumber);
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

  it("also removes more agents than one statement does, and those whose configuration was replaced", async () => {
    const { token } = await signedUp();
    const { jobNumber, apIds } = await spinUp(token, 501);
    const change = { configuration: { note: "replaced" } };
    expect((await send("PUT", `/api/v1/agents/${apIds[0]}`, change, await adminToken())).status).toBe(200);
    expect(await remove(jobNumber, token)).toEqual({ status: 200, detail: "501 agents removed" });
  });
});

describe("the retention of emulated access points", () => {
  it("starts at the end of the emulation, and at its end the service removes them, audited once", async () => {
    const { token } = await signedUp();
    const [ended, kept, running] = await Promise.all([spinUp(token), spinUp(token), spinUp(token)]);
    await Promise.all([reportDone(ended.jobNumber), reportDone(kept.jobNumber)]);
    await sweep();
    expect((await emulationOf(running.jobNumber))?.endedAt).toBeNull();
    const endedAt = (await emulationOf(ended.jobNumber))?.endedAt;
    expect(endedAt).toEqual((await jobOf(ended.jobNumber))?.updatedAt);
    await endedAgo(ended.jobNumber, 25 * HOUR_MS);
    await endedAgo(kept.jobNumber, 23 * HOUR_MS);
    await sweep();
    await sweep();
    expect(await Promise.all([ended, kept, running].map(({ apIds }) => statusOf(apIds[1])))).toEqual([404, 200, 200]);
    expect((await entriesOf(ended.jobNumber)).filter((entry) => entry.startsWith("service:"))).toEqual([
      "service:retention remove emulated agents",
    ]);
    expect(await remove(ended.jobNumber, token)).toEqual({ status: 200, detail: "0 agents removed" });
  });

  it("starts also if the job was cancelled or is gone", async () => {
    const { token } = await signedUp();
    const [cancelled, gone] = await Promise.all([spinUp(token), spinUp(token)]);
    expect((await send("DELETE", `/api/v1/jobs/${cancelled.jobNumber}`, undefined, token)).status).toBe(200);
    await forgetJob(gone.jobNumber);
    await sweep();
    expect((await emulationOf(cancelled.jobNumber))?.endedAt).not.toBeNull();
    expect((await emulationOf(gone.jobNumber))?.endedAt).not.toBeNull();
  });

  it("ends the job whose emulator never reported its end", async () => {
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

  it("covers agents from before emulations were recorded, whose owner is known as long as the job is", async () => {
    const { username, token } = await signedUp();
    const [gone, running] = await Promise.all([spinUp(token), spinUp(token)]);
    for (const { jobNumber } of [gone, running]) await database.delete(emulations).where(ofJob(jobNumber));
    await forgetJob(gone.jobNumber);
    await sweep();
    expect(await emulationOf(running.jobNumber)).toMatchObject({
      owner: `user:${username}`,
      accessPoints: 2,
      endedAt: null,
    });
    expect(await emulationOf(gone.jobNumber)).toMatchObject({ owner: "", endedAt: expect.any(Date) });
    expect((await remove(gone.jobNumber, token)).status).toBe(403);
    await endedAgo(gone.jobNumber, 25 * HOUR_MS);
    await sweep();
    expect([await statusOf(gone.apIds[0]), await statusOf(running.apIds[0])]).toEqual([404, 200]);
  });

  it("is remembered for thirty days after the removal, and then forgotten", async () => {
    const { token } = await signedUp();
    const { jobNumber } = await spinUp(token, 1);
    await remove(jobNumber, token);
    await forgetJob(jobNumber);
    const statusAfter = async (days: number) => {
      const removedAt = new Date(Date.now() - days * 24 * HOUR_MS);
      await database.update(emulations).set({ removedAt }).where(ofJob(jobNumber));
      await sweep();
      return (await remove(jobNumber, token)).status;
    };
    expect([await statusAfter(29), await statusAfter(31)]).toEqual([200, 404]);
  });
});
