import { env, runDurableObjectAlarm } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { outbox } from "../../../src/broker/outbox-table.ts";
import { emulations } from "../../../src/emulator/emulation-tables.ts";
import { parseEnv } from "../../../src/env.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { movableClock } from "../jobs/job-support.ts";
import { adminToken, bearer, newAgent, newApp, postJson, send, signedUp, uniqueName } from "../support.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const jobStore = createJobStore(database);
const MINUTE_MS = 60_000;
const clock = movableClock();

const jobNumberOf = async (response: Response): Promise<string> => {
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_number: string }).job_number;
};
const liveStream = async (apId: string, token: string) => {
  const query = new URLSearchParams({
    agent_id: apId,
    start_time: new Date(Date.now() - MINUTE_MS).toISOString(),
    end_time: new Date(Date.now() + 30 * MINUTE_MS).toISOString(),
  });
  return await jobNumberOf(await send("POST", `/api/v1/agent_data/request_agent_data?${query}`, undefined, token));
};
const command = async (apId: string, token: string) =>
  await jobNumberOf(await send("POST", `/api/v1/send_command?agent_id=${apId}&command=x`, undefined, token));
const emulation = async (token: string) => {
  const spec = { access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 600 };
  return await jobNumberOf(await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, token));
};
const claimed = async (token: string) =>
  await jobNumberOf(await postJson(`/api/v1/callback/agent_data?job_number=${uniqueName()}`, [1], bearer(token)));
const stateOf = async (jobNumber: string) => (await jobStore.find(jobNumber))?.state;
const isClosed = async (jobNumber: string) => (await env.JOB_STREAM.getByName(jobNumber).describe()).closed;
const messagesOf = (jobNumber: string) => database.select().from(outbox).where(eq(outbox.jobNumber, jobNumber));
const endOf = async (jobNumber: string) =>
  (await database.select().from(emulations).where(eq(emulations.jobNumber, jobNumber)))[0]?.endedAt;

/** Opens a live stream, a queued command, a running emulation, and a stream whose number the caller chose. */
async function openJobs(token: string, emulator: string) {
  const [one, other] = await Promise.all([newAgent(), newAgent()]);
  const jobs = {
    live: await liveStream(one.apId, token),
    command: await command(other.apId, token),
    emulation: await emulation(token),
    claimed: await claimed(token),
  };
  expect((await reportRunning(jobs.emulation, emulator)).status).toBe(200);
  return jobs;
}
const reportRunning = (jobNumber: string, token: string) =>
  postJson(
    `/api/v1/callback/emulator?job_number=${jobNumber}`,
    [{ emulator: "e", part: 1, state: "running" }],
    bearer(token),
  );

describe("deleting an account", () => {
  const user = async () => {
    const { username, token } = await signedUp();
    return { token, path: `/api/v1/users/${username}` };
  };
  const app = async () => {
    const { appName, token } = await newApp();
    return { token, path: `/api/v1/third_party_apps/${appName}` };
  };

  it.each([
    ["a user", user],
    ["an app", app],
  ])("ends all open jobs of %s, and those of no other account", async (_, create) => {
    const [owner, other, emulator] = await Promise.all([create(), create(), newApp({ callbacks: true })]);
    const [ended, kept] = await Promise.all([
      openJobs(owner.token, emulator.token),
      openJobs(other.token, emulator.token),
    ]);
    const details = "/api/v1/agent_details/request_all_agents_details";
    const finished = await jobNumberOf(await send("POST", details, undefined, owner.token));
    await expect.poll(() => stateOf(finished), { timeout: 10_000 }).toBe("done");

    expect((await send("DELETE", owner.path, undefined, await adminToken())).status).toBe(200);

    const statesOf = async (jobs: typeof ended) => await Promise.all(Object.values(jobs).map(stateOf));
    expect(await statesOf(ended)).toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
    expect(await messagesOf(ended.command)).toEqual([]);
    expect(await endOf(ended.emulation)).toBeInstanceOf(Date);
    expect((await reportRunning(ended.emulation, emulator.token)).status).toBe(409);
    await expect
      .poll(() => Promise.all(Object.values(ended).map(isClosed)), { timeout: 10_000 })
      .toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
    expect(await stateOf(finished)).toBe("done");

    expect(await statesOf(kept)).toEqual(["running", "queued", "running", "running"]);
    expect(await messagesOf(kept.command)).toHaveLength(1);
    expect(await endOf(kept.emulation)).toBeNull();
    expect((await reportRunning(kept.emulation, emulator.token)).status).toBe(200);
    expect(await isClosed(kept.live)).toBeUndefined();
  });

  it("ends the open jobs of an agent", async () => {
    const { apId, token } = await newAgent();
    const live = await liveStream(apId, token);
    expect((await send("DELETE", `/api/v1/agents/${apId}`, undefined, await adminToken())).status).toBe(200);
    expect(await stateOf(live)).toBe("cancelled");
    await expect.poll(() => isClosed(live), { timeout: 10_000 }).toBe("cancelled");
  });

  it("ends nothing if the account is not deleted", async () => {
    const [{ token, username }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    const live = await liveStream(apId, token);
    const other = await signedUp();
    expect((await send("DELETE", `/api/v1/users/${username}`, undefined, other.token)).status).toBe(403);
    expect((await send("DELETE", `/api/v1/users/x${username}`, undefined, await adminToken())).status).toBe(404);
    expect(await stateOf(live)).toBe("running");
  });
});

describe("a stream whose job is cancelled in the database only", () => {
  it("stops when it next reports its state", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    const live = await liveStream(apId, token);
    const job = env.JOB_STREAM.getByName(live);
    await expect.poll(async () => (await job.describe()).messages, { timeout: 10_000 }).toBeGreaterThan(0);
    await jobStore.update(live, { state: "cancelled" });
    clock.forwardMs += 61 * MINUTE_MS;
    await runDurableObjectAlarm(job);
    expect(await isClosed(live)).toBe("cancelled");
  });
});
