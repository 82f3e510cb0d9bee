import { createExecutionContext, env, waitOnExecutionContext } from "cloudflare:test";
import { sql } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import type { OpenApiDocument } from "../../../src/http/docs/openapi.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { adminToken, appWith, bearer, newAgent, send, signedUp, uniqueName } from "../support.ts";

const database = createDatabase({ url: parseEnv(env).LIBSQL_URL });

/** Returns the Worker with other quotas. Each test has its own accounts, so that no other test uses up their quotas. */
function limited(settings: Record<string, string>) {
  const app = appWith(settings);
  const call = async (method: string, path: string, token: string, body?: unknown): Promise<Response> => {
    const context = createExecutionContext();
    const headers = { ...bearer(token), ...(body !== undefined && { "Content-Type": "application/json" }) };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await app.request(`https://controller.test${path}`, init, env, context);
    await waitOnExecutionContext(context);
    return response;
  };
  return {
    call,
    spinUp: (token: string, num_access_points: number, location = "1,1") =>
      call("POST", "/api/v1/emulator/spinup", token, {
        emulators: [
          { access_point_type: "WiFi", num_access_points, locations: [location], num_devices: 1, duration: 60 },
        ],
      }),
    details: (token: string) => call("POST", "/api/v1/agent_details/request_all_agents_details", token),
    data: (token: string, apId: string, endMs: number) => {
      const query = new URLSearchParams({
        agent_id: apId,
        start_time: new Date(endMs - 3_600_000).toISOString(),
        end_time: new Date(endMs).toISOString(),
      });
      return call("POST", `/api/v1/agent_data/request_agent_data?${query}`, token);
    },
  };
}

async function expectExceeded(response: Response, quota: string): Promise<void> {
  expect(await response.json()).toEqual({ detail: `Quota exceeded: at most ${quota}` });
  expect(response.status).toBe(429);
}

const jobNumberOf = async (response: Response): Promise<string> => {
  expect(response.status).toBe(200);
  return ((await response.json()) as { job_number: string }).job_number;
};
const cancel = async (jobNumber: string, token: string) =>
  expect((await send("DELETE", `/api/v1/jobs/${jobNumber}`, undefined, token)).status).toBe(200);
const DAY_MS = 86_400_000;

describe("the quota of running emulated access points", () => {
  it("rejects a spin-up beyond it with a 429 that names it, and accepts one after an emulation ended", async () => {
    const [{ token }, other] = await Promise.all([signedUp(), signedUp()]);
    const { spinUp } = limited({ EMULATED_PER_ACCOUNT: "3", EMULATED_TOTAL: "1000000" });
    const first = await jobNumberOf(await spinUp(token, 2));
    const rejected = await spinUp(token, 2);
    expect(rejected.headers.get("Retry-After")).toBe("60");
    await expectExceeded(rejected, "3 running emulated access points per account (EMULATED_PER_ACCOUNT)");
    expect((await spinUp(token, 1)).status).toBe(200);
    expect((await spinUp(other.token, 3)).status).toBe(200);
    await cancel(first, token);
    expect((await spinUp(token, 2)).status).toBe(200);
  });

  it("has a second limit that counts ended access points until they are removed", async () => {
    const { token } = await signedUp();
    const { spinUp, call } = limited({ EMULATED_KEPT_PER_ACCOUNT: "3", EMULATED_KEPT_TOTAL: "1000000" });
    const first = await jobNumberOf(await spinUp(token, 2));
    await cancel(first, token);
    const quota = "3 registered emulated access points (running or ended) per account (EMULATED_KEPT_PER_ACCOUNT)";
    await expectExceeded(await spinUp(token, 2), quota);
    expect((await call("DELETE", `/api/v1/emulator/${first}`, token)).status).toBe(200);
    expect((await spinUp(token, 2)).status).toBe(200);
  });

  it("stores nothing of a rejected spin-up", async () => {
    const { username, token } = await signedUp();
    const { spinUp, call } = limited({ EMULATED_PER_ACCOUNT: "3", EMULATED_TOTAL: "1000000" });
    // A location that no other test uses.
    const latitude = 10 + Math.random();
    const countAll = async () =>
      await database.all(sql`select
        (select count(*) from agents where abs(json_extract(configuration, '$.geolocation.latitude') - ${latitude}) < 0.002) as agents,
        (select count(*) from emulations where owner = ${`user:${username}`}) as emulations,
        (select count(*) from audit where actor = ${`user:${username}`}) as entries`);
    const before = await countAll();
    const rejected = await spinUp(token, 4, `${latitude},2`);
    expect(rejected.headers.get("Retry-After")).toBeNull();
    await expectExceeded(rejected, "3 running emulated access points per account (EMULATED_PER_ACCOUNT)");
    expect(await countAll()).toEqual(before);
    expect(await (await call("GET", "/api/v1/jobs/", token)).json()).toEqual([]);
  });

  it("accepts only one of several concurrent spin-ups that exceed it together", async () => {
    const { token } = await signedUp();
    const { spinUp } = limited({ EMULATED_PER_ACCOUNT: "500", EMULATED_TOTAL: "1000000" });
    const responses = await Promise.all([spinUp(token, 300), spinUp(token, 300), spinUp(token, 300)]);
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 429, 429]);
  });

  it("applies to all accounts together, including administrators", async () => {
    const { spinUp } = limited({ EMULATED_TOTAL: "1" });
    const rejected = await spinUp(await adminToken(), 2);
    await expectExceeded(rejected, "1 running emulated access points in total (EMULATED_TOTAL)");
  });
});

describe("the quota of open jobs", () => {
  it("rejects a job of any kind beyond it with a 429 that names it, and accepts one after another ended", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    const { call, data, spinUp } = limited({ OPEN_JOBS_PER_ACCOUNT: "2" });
    const live = await jobNumberOf(await data(token, apId, Date.now() + 600_000));
    const command = (name: string) => call("POST", `/api/v1/send_command?agent_id=${name}&command=x`, token);
    expect((await command(apId)).status).toBe(200);
    const quota = "2 open jobs per account (OPEN_JOBS_PER_ACCOUNT)";
    const other = await newAgent();
    const rejected = await command(other.apId);
    expect(rejected.headers.get("Retry-After")).toBe("60");
    await expectExceeded(rejected, quota);
    await expectExceeded(await data(token, apId, Date.now() + 600_000), quota);
    await expectExceeded(await spinUp(token, 1), quota);
    await expectExceeded(
      await call("POST", `/api/v1/callback/agent_data?job_number=${uniqueName()}`, token, [1]),
      quota,
    );
    await cancel(live, token);
    expect((await command(other.apId)).status).toBe(200);
  });

  it("counts streams whose numbers callers choose, and does not limit posts to open ones", async () => {
    const { token } = await signedUp();
    const { call } = limited({ OPEN_JOBS_PER_ACCOUNT: "1" });
    const post = (jobNumber: string) => call("POST", `/api/v1/callback/agent_data?job_number=${jobNumber}`, token, [1]);
    const mine = uniqueName();
    expect((await post(mine)).status).toBe(200);
    await expectExceeded(await post(uniqueName()), "1 open jobs per account (OPEN_JOBS_PER_ACCOUNT)");
    expect((await post(mine)).status).toBe(200);
  });

  it("rejects a bulk command as a whole if its jobs would be too many", async () => {
    const [{ token }, ...agents] = await Promise.all([signedUp(), newAgent(), newAgent(), newAgent()]);
    const { call } = limited({ OPEN_JOBS_PER_ACCOUNT: "2" });
    const apIds = agents.map(({ apId }) => apId);
    const command = (ap_ids: string[]) => call("POST", "/api/v1/commands", token, { command: "x", agents: { ap_ids } });
    await expectExceeded(await command(apIds), "2 open jobs per account (OPEN_JOBS_PER_ACCOUNT)");
    expect(await (await call("GET", "/api/v1/jobs/", token)).json()).toEqual([]);
    expect((await command(apIds.slice(0, 2))).status).toBe(200);
  });

  it("accepts exactly as many concurrent jobs as there is room for", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    const { data } = limited({ OPEN_JOBS_PER_ACCOUNT: "3" });
    const responses = await Promise.all(Array.from({ length: 8 }, () => data(token, apId, Date.now() + 600_000)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(5);
  });

  it("applies to all accounts together, including administrators", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    expect((await limited({}).data(token, apId, Date.now() + 600_000)).status).toBe(200);
    const rejected = await limited({ OPEN_JOBS_TOTAL: "1" }).details(await adminToken());
    await expectExceeded(rejected, "1 open jobs in total (OPEN_JOBS_TOTAL)");
  });

  it("is counted in an index that holds open jobs only", async () => {
    for (const owner of [sql`owner_id = 'someone' and`, sql``]) {
      const plan = await database.all(
        sql`explain query plan select count(*) from jobs where ${owner} state in ('queued', 'running')`,
      );
      expect(JSON.stringify(plan)).toContain("COVERING INDEX jobs_open");
    }
  });
});

describe("the OpenAPI document", () => {
  it.each([
    "/api/v1/emulator/spinup",
    "/api/v1/agent_details/request_all_agents_details",
    "/api/v1/agent_data/request_agent_data",
    "/api/v1/send_command",
    "/api/v1/commands",
    "/api/v1/callback/agent_data",
  ])("declares that %s may exceed a quota", async (path) => {
    const document = (await (await send("GET", "/openapi.json")).json()) as OpenApiDocument;
    expect(document.paths[path]?.post?.responses[429]).toMatchObject({ description: expect.stringMatching(/quota/i) });
  });
});

describe("the quota of live streams that end far in the future", () => {
  it("rejects one beyond it with a 429 that names it, and no other stream", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    const { data } = limited({ LONG_LIVE_JOBS_PER_ACCOUNT: "1", LONG_LIVE_JOBS_TOTAL: "1000000" });
    const first = await jobNumberOf(await data(token, apId, Date.now() + 2 * DAY_MS));
    const rejected = await data(token, apId, Date.now() + 2 * DAY_MS);
    await expectExceeded(
      rejected,
      "1 live jobs that end more than 24 hours from now per account (LONG_LIVE_JOBS_PER_ACCOUNT)",
    );
    expect((await data(token, apId, Date.now() + DAY_MS / 2)).status).toBe(200);
    expect((await data(token, apId, Date.now() - DAY_MS)).status).toBe(200);
    await cancel(first, token);
    expect((await data(token, apId, Date.now() + 2 * DAY_MS)).status).toBe(200);
  });

  it("applies to all accounts together", async () => {
    const [{ token }, { apId }] = await Promise.all([signedUp(), newAgent()]);
    await expectExceeded(
      await limited({ LONG_LIVE_JOBS_TOTAL: "0" }).data(token, apId, Date.now() + 2 * DAY_MS),
      "0 live jobs that end more than 24 hours from now in total (LONG_LIVE_JOBS_TOTAL)",
    );
  });
});
