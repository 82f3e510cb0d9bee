import { env } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { createJobExpiry } from "../../../src/delivery/job-expiry.ts";
import { createJobStore } from "../../../src/jobs/job-store.ts";
import { jobs } from "../../../src/jobs/job-table.ts";
import { createStreamClient } from "../../../src/jobs/stream/stream-client.ts";
import { adminToken, bearer, newAgent, newApp, postJson, send, signedUp, uniqueName } from "../support.ts";
import { brief, database, eventsOf } from "./event-support.ts";

const jobOf = async (response: Response): Promise<string> => {
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_number: string }).job_number;
};
const command = async (apId: string, token: string, text = "set_channel 36"): Promise<string> => {
  const path = `/api/v1/send_command?agent_id=${apId}&command=${encodeURIComponent(text)}`;
  return await jobOf(await send("POST", path, undefined, token));
};
const expire = async (jobNumber: string): Promise<void> => {
  const expiry = createJobExpiry(createJobStore(database), createStreamClient(env.JOB_STREAM));
  await Promise.all([expiry.expire(jobNumber), expiry.expire(jobNumber)]);
};

describe("a command", () => {
  it("is an event when it is issued and when the agent answers, without its arguments", async () => {
    const [agent, user] = [await newAgent({}, { site: "c" }), await signedUp()];
    let job_number = "";
    const found = await eventsOf(agent.apId, async () => {
      job_number = await command(agent.apId, user.token);
      const path = `/api/v1/callback/command?job_number=${job_number}`;
      for (let i = 0; i < 2; i++) expect((await send("POST", path, [{}], agent.token)).status).toBe(200);
    });
    expect(brief(found)).toEqual([
      { type: "command.issued", actor: `user:${user.username}`, data: { job_number, command: "set_channel" } },
      {
        type: "command.answered",
        actor: `agent:${agent.apId}`,
        data: { job_number, command: "set_channel", outcome: "done" },
      },
    ]);
    for (const { ap_id, labels } of found)
      expect([ap_id, labels]).toEqual([agent.apId, { site: "c", emulated: "false" }]);
  });

  it("is an event with a warning when it fails or expires, and one when it is cancelled", async () => {
    const [agents, user] = [await Promise.all([newAgent(), newAgent(), newAgent()]), await signedUp()];
    const endOf = async (apId = "", end: (job: string) => Promise<unknown>) => {
      const found = await eventsOf(apId, async () => await end(await command(apId, user.token, "reboot")));
      return found.map(({ type, severity, actor, data }) => [type, severity, actor, data.outcome])[1];
    };
    const [failing, silent, cancelled] = agents;
    const post = (job: string) =>
      send("POST", `/api/v1/callback/command?job_number=${job}`, [{ status: "failed" }], failing?.token);
    expect(await endOf(failing?.apId, post)).toEqual([
      ...["command.answered", "warning", `agent:${failing?.apId}`, "failed"],
    ]);
    expect(await endOf(silent?.apId, expire)).toEqual(["command.expired", "warning", "service", "expired"]);
    const cancel = (job: string) => send("DELETE", `/api/v1/jobs/${job}`, undefined, user.token);
    expect(await endOf(cancelled?.apId, cancel)).toEqual([
      ...["command.cancelled", "info", `user:${user.username}`, "cancelled"],
    ]);
  });

  it("is no event if the service refuses it", async () => {
    const agent = await newAgent({ commands: ["ping"] });
    const path = `/api/v1/send_command?agent_id=${agent.apId}&command=explode`;
    const found = await eventsOf(agent.apId, async () => {
      expect((await send("POST", path, undefined, await adminToken())).status).toBe(400);
    });
    expect(found).toEqual([]);
  });

  it("ends with an event when the account that sent it is deleted", async () => {
    const [agent, user] = [await newAgent(), await signedUp()];
    await command(agent.apId, user.token);
    const found = await eventsOf(agent.apId, async () => {
      const path = `/api/v1/users/${encodeURIComponent(user.username)}`;
      expect((await send("DELETE", path, undefined, user.token)).status).toBe(200);
    });
    expect(found).toMatchObject([{ type: "command.cancelled", actor: null }]);
  });
});

describe("a job", () => {
  it("is an event when it starts and when it ends", async () => {
    const [agent, user] = [await newAgent(), await signedUp()];
    let job_number = "";
    const found = await eventsOf(
      () => job_number,
      async () => {
        const path = `/api/v1/agent_data/request_agent_data?start_time=1000&end_time=2000&agent_id=${agent.apId}`;
        job_number = await jobOf(await send("POST", path, undefined, user.token));
        const stored = () => database.select().from(jobs).where(eq(jobs.jobNumber, job_number));
        await expect.poll(async () => (await stored())[0]?.state, { timeout: 10_000 }).toBe("done");
      },
    );
    const data = { job_number, kind: "agent_data", agent: agent.apId };
    expect(brief(found)).toEqual([
      { type: "job.started", actor: `user:${user.username}`, data },
      { type: "job.ended", actor: null, data: { ...data, outcome: "done" } },
    ]);
    for (const { ap_id } of found) expect(ap_id).toBeNull();
  });

  it("ends with an event when its row is deleted without a result", async () => {
    const [job_number, { token }] = [uniqueName(), await signedUp()];
    const found = await eventsOf(job_number, async () => {
      await send("POST", `/api/v1/callback/agent_data?job_number=${job_number}`, [], token);
      await createJobStore(database).remove(job_number);
    });
    expect(brief(found)).toMatchObject([
      { type: "job.started", data: { kind: "stream" } },
      { type: "job.ended", data: { outcome: "removed" } },
    ]);
  });
});

describe("an emulation", () => {
  const spec = { access_point_type: "LiFi", num_access_points: 3, locations: ["1,1"], num_devices: 1, duration: 60 };
  const spinUp = async (token: string): Promise<string> =>
    await jobOf(await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, token));

  it("is one event when it starts, when it ends, and when its agents are removed", async () => {
    const [user, app] = [await signedUp(), await newApp({ callbacks: true })];
    let job_number = "";
    const found = await eventsOf(
      () => job_number,
      async () => {
        job_number = await spinUp(user.token);
        const report = [{ emulator: "e", part: 1, state: "done" }];
        await postJson(`/api/v1/callback/emulator?job_number=${job_number}`, report, bearer(app.token));
        await send("DELETE", `/api/v1/emulator/${job_number}`, undefined, user.token);
        await send("DELETE", `/api/v1/emulator/${job_number}`, undefined, user.token);
      },
    );
    const actor = `user:${user.username}`;
    expect(brief(found)).toEqual([
      { type: "emulation.started", actor, data: { job_number, agents: 3 } },
      { type: "emulation.ended", actor: `app:${app.appName}`, data: { job_number, agents: 3, outcome: "done" } },
      { type: "agent.deleted", actor, data: { job_number, agents: 3 } },
    ]);
  });
});
