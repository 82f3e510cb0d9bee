import { env } from "cloudflare:test";
import { eq } from "drizzle-orm";
import { describe, expect, it, vi } from "vitest";
import { agents, groups, type StoredGrant } from "../../../src/accounts/account-tables.ts";
import { createJobRechecks } from "../../../src/delivery/job-rechecks.ts";
import { parseEnv } from "../../../src/env.ts";
import { createStreamClient } from "../../../src/jobs/stream/stream-client.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, newAgent, newApp, PASSWORD, send, signedUp, tokenOf, uniqueName } from "../support.ts";
import { post, stream } from "./job-requests.ts";

/** A change of access must be effective within this time, also on sockets that receive nothing. */
const EFFECTIVE_MS = 5_000;
const NOT_ALLOWED = 4403;
const LIVE_MS = 30 * 60_000;

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });
const rechecks = createJobRechecks(database, createStreamClient(env.JOB_STREAM));

const numberOf = async (response: Response): Promise<string> => {
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_number: string }).job_number;
};
const liveStream = async (apId: string, token: string): Promise<string> => {
  const [start, end] = [new Date(Date.now() - 60_000), new Date(Date.now() + LIVE_MS)];
  const query = `agent_id=${apId}&start_time=${start.toISOString()}&end_time=${end.toISOString()}`;
  return await numberOf(await send("POST", `/api/v1/agent_data/request_agent_data?${query}`, undefined, token));
};
const command = async (apId: string, token: string): Promise<string> =>
  await numberOf(await send("POST", `/api/v1/send_command?agent_id=${apId}&command=ping`, undefined, token));
const claimed = async (token: string): Promise<string> => {
  const job = uniqueName();
  expect((await post("agent_data", job, [], token)).status).toBe(200);
  return job;
};
const opened = async (job: string, token: string) => {
  const socket = await stream(job, token);
  expect(socket.response.status).toBe(101);
  return socket;
};
type Socket = Awaited<ReturnType<typeof opened>>;
const closesSoon = async (...sockets: Socket[]): Promise<void> => {
  const codes = () => sockets.map((socket) => socket.closed()?.code);
  await expect.poll(codes, { timeout: EFFECTIVE_MS, interval: 20 }).toEqual(sockets.map(() => NOT_ALLOWED));
};
const cancel = async (...jobs: string[]): Promise<void> => {
  for (const job of jobs) await send("DELETE", `/api/v1/jobs/${job}`, undefined, await adminToken());
};
const viewerOf = (selector: string): StoredGrant[] => [{ role: "operator", selector }];
const move = async (apId: string, site: string): Promise<void> => {
  await database.update(agents).set({ labels: { site } }).where(eq(agents.apId, apId));
};

describe("revoking a grant", () => {
  it("closes a live stream and an idle job socket within five seconds", async () => {
    const [site, agent] = [uniqueName(), await newAgent()];
    await move(agent.apId, site);
    const { username, token } = await signedUp(viewerOf(`site=${site}`));
    const jobs = [await liveStream(agent.apId, token), await claimed(token)];
    const sockets = await Promise.all(jobs.map((job) => opened(job, token)));
    expect((await send("POST", "/api/v1/agent_update/update", { payload: { x: 1 } }, agent.token)).status).toBe(200);
    await sockets[0]?.until((messages) => messages.some(({ type }) => type === "agent_data"));
    const path = `/api/v1/users/${encodeURIComponent(username)}/grants`;
    expect((await send("PUT", path, { grants: [] }, await adminToken())).status).toBe(200);
    await closesSoon(...sockets);
    const next = await tokenOf(username, PASSWORD);
    // The claimed job is not about an agent.
    expect((await stream(jobs[0] ?? "", next)).response.status).toBe(403);
    await opened(jobs[1] ?? "", next);
    await cancel(...jobs);
  });

  it.each(["password", "roles"])("is not needed for a changed %s to do the same", async (field) => {
    const { username, token } = await signedUp();
    const job = await claimed(token);
    const socket = await opened(job, token);
    const body = field === "password" ? { password: "another password" } : { roles: ["admin"] };
    expect((await send("PUT", `/api/v1/users/${encodeURIComponent(username)}`, body, await adminToken())).status).toBe(
      200,
    );
    await closesSoon(socket);
    await cancel(job);
  });

  it("also concerns apps, and their permissions", async () => {
    const { appName, token } = await newApp();
    const job = await claimed(token);
    const path = `/api/v1/third_party_apps/${appName}`;
    const first = await opened(job, token);
    expect((await send("PUT", `${path}/grants`, { grants: [] }, await adminToken())).status).toBe(200);
    await closesSoon(first);
    const second = await opened(job, await tokenOf(appName, PASSWORD, "third_party_app"));
    expect((await send("PUT", path, { permissions: { data: false } }, await adminToken())).status).toBe(200);
    await closesSoon(second);
    await cancel(job);
  });
});

describe("an agent that leaves a reader's scope", () => {
  it("closes the reader's sockets for it, and only those", async () => {
    const [site, agent, staying] = [uniqueName(), await newAgent(), await newAgent()];
    await Promise.all([move(agent.apId, site), move(staying.apId, site)]);
    const [limited, unlimited] = await Promise.all([signedUp(viewerOf(`site=${site}`)), signedUp()]);
    const jobs = {
      live: await liveStream(agent.apId, limited.token),
      command: await command(agent.apId, limited.token),
      staying: await liveStream(staying.apId, limited.token),
      unlimited: await liveStream(agent.apId, unlimited.token),
    };
    const lost = await Promise.all([opened(jobs.live, limited.token), opened(jobs.command, limited.token)]);
    const kept = await Promise.all([opened(jobs.staying, limited.token), opened(jobs.unlimited, unlimited.token)]);
    await move(agent.apId, "elsewhere");
    rechecks.recheckJobsOf({ apIds: [agent.apId, staying.apId] });
    await closesSoon(...lost);
    expect(kept.map((socket) => socket.closed())).toEqual([undefined, undefined]);
    for (const job of [jobs.live, jobs.command]) {
      const { response } = await stream(job, limited.token);
      expect([response.status, await response.json()]).toEqual([403, { detail: "Not enough permissions" }]);
    }
    await cancel(...Object.values(jobs));
  });

  it("closes them when it is deleted, or when its group changes", async () => {
    const [site, name, agent, other] = [uniqueName(), uniqueName(), await newAgent(), await newAgent()];
    await Promise.all([move(agent.apId, site), move(other.apId, site)]);
    await database.insert(groups).values({ name, selector: `site=${site}`, description: "", updatedAt: new Date() });
    const { token } = await signedUp(viewerOf(`@${name}`));
    const jobs = [await liveStream(agent.apId, token), await liveStream(other.apId, token)];
    const [first, second] = await Promise.all([opened(jobs[0] ?? "", token), opened(jobs[1] ?? "", token)]);
    expect((await send("DELETE", `/api/v1/agents/${agent.apId}`, undefined, await adminToken())).status).toBe(200);
    await closesSoon(first);
    expect(second.closed()).toBeUndefined();
    await database.update(groups).set({ selector: "site=none" }).where(eq(groups.name, name));
    rechecks.recheckJobsOf({ group: name });
    await closesSoon(second);
    await cancel(...jobs);
  });
});

describe("a recheck", () => {
  it("ignores objects of an earlier version, which do not have the method, and logs other errors", async () => {
    const { apId } = await newAgent();
    const { token } = await signedUp();
    const job = await liveStream(apId, token);
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    const logged = () => lines.mock.calls.filter(([line]) => String(line).includes("job sockets not rechecked")).length;
    try {
      let calls = 0;
      const recheckWith = (call: () => Promise<void>) =>
        createJobRechecks(database, { recheck: () => call().finally(() => calls++) }).recheckJobsOf({ apIds: [apId] });
      // The message of workerd.
      const unknown = new TypeError('The RPC receiver does not implement the method "recheck".');
      recheckWith(() => Promise.reject(unknown));
      await expect.poll(() => calls).toBe(1);
      await scheduler.wait(10);
      expect(logged()).toBe(0);
      recheckWith(() => Promise.reject(new Error("overloaded")));
      await expect.poll(logged).toBe(1);
    } finally {
      lines.mockRestore();
    }
    await cancel(job);
  });
});
