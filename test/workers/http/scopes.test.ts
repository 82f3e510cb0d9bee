import { beforeAll, describe, expect, it } from "vitest";
import type { StoredGrant } from "../../../src/accounts/account-tables.ts";
import type { GrantRole } from "../../../src/auth/agent-scope.ts";
import { newAlert } from "../alerting/requests.ts";
import { eventLog, listEvents } from "../events/event-support.ts";
import {
  adminToken,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  signedUp,
  testStore,
  tokenOf,
  uniqueName,
} from "../support.ts";

/**
 * Calls every operation on an agent as every kind of limited caller, for an agent in its scope, one out of its scope, and one that does
 * not exist. The caller must not be able to tell the last two apart.
 */

const ROLES = ["none", "viewer", "operator", "manager"] as const;
type Role = (typeof ROLES)[number];

interface Operation {
  route: string;
  /** The role that the operation needs. */
  role: GrantRole;
  /** Status for an agent that the caller sees without the role. Default: 403. */
  body?: object;
}

const OPERATIONS: Operation[] = [
  { route: "GET /api/v1/agents/{name}", role: "viewer" },
  { route: "GET /api/v1/agents/{name}/labels", role: "viewer" },
  { route: "GET /api/v1/metrics/agent_data?window=1&agent={name}", role: "viewer" },
  { route: "GET /api/v1/metrics/agent_multi_metric_data?metrics=x&window=1&sources=true&agent={name}", role: "viewer" },
  { route: "GET /api/v1/metrics/agent_metrics?window=1&agent={name}", role: "viewer" },
  { route: "GET /api/v1/metrics/download?metrics=x&agent={name}", role: "viewer" },
  {
    route: "POST /api/v1/agent_data/request_agent_data?start_time=1000&end_time=2000&agent_id={name}",
    role: "viewer",
  },
  { route: "POST /api/v1/send_command?command=ping&agent_id={name}", role: "operator" },
  { route: "PUT /api/v1/agents/{name}", role: "manager", body: {} },
  { route: "PUT /api/v1/agents/{name}", role: "manager", body: { configuration: { a: 1 } } },
  { route: "PUT /api/v1/agents/{name}", role: "manager", body: { password: PASSWORD } },
  { route: "PUT /api/v1/agents/{name}/labels", role: "manager", body: { floor: "3" } },
  { route: "DELETE /api/v1/agents/{name}", role: "manager" },
];

/** Names of one length, so that responses of one form have one length. */
const site = `s-${crypto.randomUUID()}`;
const inScope = (): Promise<string> => agentAt(`${site}/a`);
const outOfScope = (): Promise<string> => agentAt(`elsewhere/${site}`);
const agentAt = async (place: string): Promise<string> =>
  (await newAgent({ commands: ["ping"] }, { site: place })).apId;

const grantsOf = (role: Role): StoredGrant[] => (role === "none" ? [] : [{ role, selector: `site=${site}/*` }]);

async function appToken(role: Role): Promise<string> {
  const { appName } = await newApp({});
  const path = `/api/v1/third_party_apps/${appName}/grants`;
  expect((await send("PUT", path, { grants: grantsOf(role) }, await adminToken())).status).toBe(200);
  return await tokenOf(appName, PASSWORD, "third_party_app");
}

const CALLERS = ROLES.flatMap((role) => [
  { caller: `a user: ${role}`, role, login: async () => (await signedUp(grantsOf(role))).token },
  { caller: `an app: ${role}`, role, login: () => appToken(role) },
]);

/** Everything that a caller can see of a response, without the agent's name and what differs between any two responses. */
async function visible(response: Response, name: string) {
  const headers = [...response.headers].filter(([header]) => !["x-request-id", "date"].includes(header));
  const text = (await response.text()).replaceAll(name, "NAME");
  return { status: response.status, headers: Object.fromEntries(headers), text };
}

const callWith = async ({ route, body }: Operation, name: string, token: string): Promise<Response> => {
  const [method = "", path = ""] = route.replace("{name}", name).split(" ");
  return await send(method, path, body, token);
};

/** 403 if the caller sees the agent, or if its token can never perform the operation. */
function expectedStatus(role: Role, needed: GrantRole): number {
  if (role === "none") return needed === "manager" ? 403 : 404;
  return ROLES.indexOf(role) >= ROLES.indexOf(needed) ? 200 : 403;
}

describe.each(CALLERS)("$caller", ({ role, login }) => {
  let token: string;
  beforeAll(async () => {
    token = await login();
  });

  it.each(OPERATIONS)("$route $body: cannot tell an agent out of scope from an absent one", async (operation) => {
    expect((await callWith(operation, await inScope(), token)).status).toBe(expectedStatus(role, operation.role));
    const [hidden, absent] = [await outOfScope(), uniqueName()];
    const [first, second] = [await callWith(operation, hidden, token), await callWith(operation, absent, token)];
    const response = await visible(first, hidden);
    expect(response).toEqual(await visible(second, absent));
    expect(response.status).toBe(operation.role === "manager" && role !== "manager" ? 403 : 404);
    // The agent is unchanged.
    expect((await send("GET", `/api/v1/agents/${hidden}`, undefined, await adminToken())).status).toBe(200);
  });

  it("sees only agents in its scope in lists, counts, exports and aggregates", async () => {
    const [seen, hidden] = [await inScope(), await outOfScope()];
    const paths = [
      "/api/v1/agents/",
      `/api/v1/agents/?selector=site%3D*`,
      "/api/v1/overview",
      "/api/v1/metrics/agent_details",
      "/api/v1/labels?limit=1000",
      "/api/v1/labels/export",
      "/api/v1/groups/",
      "/api/v1/metrics/aggregate?metrics=load&by=site&statistic=count&window=1",
      "/api/v1/metrics/export",
      "/api/v1/metrics/download",
      "/api/v1/alerts?state=all",
      "/api/v1/alerts/silences",
    ];
    await newAlert({ apId: seen, labels: { site: `${site}/a` } });
    await newAlert({ apId: hidden, labels: { site: `elsewhere/${site}` } });
    await newAlert({ groupValue: `elsewhere/${site}`, labels: { site: `elsewhere/${site}` } });
    for (const path of paths) {
      const response = await send("GET", path, undefined, token);
      const text = await response.text();
      expect([path, response.status]).toEqual([path, 200]);
      expect(text).not.toContain(hidden);
      expect(text).not.toContain(`elsewhere/${site}`);
      if (role === "none") expect(text).not.toContain(site);
      else if (path.startsWith("/api/v1/agents/") || path.endsWith("agent_details")) expect(text).toContain(seen);
    }
  });

  it("gets the events about agents in its scope only, and the same cursor as for absent ones", async () => {
    const after = await eventLog.newestId();
    const [seen, hidden] = [await inScope(), await outOfScope()];
    const { events, next_after } = await listEvents(token, `after=${after}&limit=1000`);
    const text = JSON.stringify(events);
    expect([text.includes(seen), text.includes(hidden)]).toEqual([role !== "none", false]);
    expect(next_after).toBeGreaterThanOrEqual(after + 4);
    // An agent out of scope and an absent one cannot be told apart by a selector.
    const pages = await Promise.all(
      [`elsewhere/${site}`, uniqueName()].map((place) =>
        listEvents(token, `after=0&limit=1000&selector=${encodeURIComponent(`site=${place}`)}`),
      ),
    );
    for (const page of pages) expect(page.events).toEqual([]);
  });

  it("tests alert rules on agents in its scope only", async () => {
    const [seen, hidden] = [await inScope(), await outOfScope()];
    const nowMs = Date.now();
    const sample = (apId: string) => ({ apId, tsMs: nowMs - 60_000, metrics: { load: 1 }, texts: {} });
    await testStore().insert([sample(seen), sample(hidden)], uniqueName());
    const rule = { condition: { metric: "load", op: ">", value: 0 } };
    const read = async () => {
      const body = { rule, from: nowMs - 120_000, to: nowMs };
      return await (await send("POST", "/api/v1/alerts/rules/test", body, token)).text();
    };
    // The labels may be a few seconds old.
    if (role !== "none") await expect.poll(read, { timeout: 10_000, interval: 300 }).toContain(seen);
    expect(await read()).not.toContain(hidden);
    if (role === "none") expect(await read()).not.toContain(seen);
  });

  it("gets the same refusal for an agent out of scope and an absent one in a bulk command", async () => {
    const [seen, hidden, absent] = [await inScope(), await outOfScope(), uniqueName()];
    const body = { command: "ping", agents: { ap_ids: [seen, hidden, absent] } };
    const response = await send("POST", "/api/v1/commands", body, token);
    const { jobs, refused } = (await response.json()) as {
      jobs: { ap_id: string }[];
      refused: { ap_id: string; detail: string }[];
    };
    const canSend = role === "operator" || role === "manager";
    expect(jobs.map(({ ap_id }) => ap_id)).toEqual(canSend ? [seen] : []);
    const details = Object.fromEntries(refused.map(({ ap_id, detail }) => [ap_id, detail]));
    expect(details[hidden]).toBe("Agent not found");
    expect(details[absent]).toBe("Agent not found");
    if (role === "viewer") expect(details[seen]).toBe("Not enough permissions");
  });
});

describe("a manager", () => {
  const manager = async () => (await signedUp(grantsOf("manager"))).token;
  const newBody = (labels: object) => ({ ap_id: uniqueName(), password: PASSWORD, configuration: {}, labels });
  const create = async (labels: object, token: string) =>
    (await send("POST", "/api/v1/agents/", newBody(labels), token)).status;

  it("creates agents inside its scope only", async () => {
    const token = await manager();
    expect(await create({ site: `${site}/new` }, token)).toBe(200);
    expect(await create({ site: "elsewhere" }, token)).toBe(403);
    expect(await create({}, token)).toBe(403);
  });

  it("cannot move an agent out of its scope, nor into it from outside", async () => {
    const token = await manager();
    const [own, other] = [await inScope(), await outOfScope()];
    const label = async (apId: string, labels: object) =>
      (await send("PUT", `/api/v1/agents/${apId}/labels`, labels, token)).status;
    expect(await label(own, { site: "elsewhere" })).toBe(403);
    expect(await label(own, { site: null })).toBe(403);
    expect(await label(own, { site: `${site}/b` })).toBe(200);
    expect(await label(other, { site: `${site}/b` })).toBe(404);
    const bulk = { selector: `site=${site}/*`, labels: { site: "elsewhere" } };
    expect((await send("POST", "/api/v1/labels", bulk, token)).status).toBe(403);
    const csv = `ap_id,site\n${other},${site}/c\n`;
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "text/csv" };
    const imported = await request("/api/v1/labels/import", { method: "POST", body: csv, headers });
    expect(imported.status).toBe(422);
    expect(await imported.text()).toContain("Agent not found");
  });
});

describe("the socket of a job about an agent", () => {
  it("looks the same if the agent has left the scope as if it was deleted", async () => {
    const { token } = await signedUp(grantsOf("viewer"));
    const [moved, deleted] = [await inScope(), await inScope()];
    const historyPath = "/api/v1/agent_data/request_agent_data?start_time=1000&end_time=2000&agent_id=";
    const jobOf = async (apId: string): Promise<string> => {
      const response = await send("POST", `${historyPath}${apId}`, undefined, token);
      return ((await response.json()) as { job_number: string }).job_number;
    };
    const open = async (job: string) => {
      const headers = { Upgrade: "websocket", Authorization: `Bearer ${token}` };
      const response = await request(`/api/v1/ws/${job}`, { headers });
      response.webSocket?.accept();
      response.webSocket?.close(1000);
      return response.status === 101 ? 101 : await visible(response, job);
    };
    const jobs = [await jobOf(moved), await jobOf(deleted)] as const;
    expect([await open(jobs[0]), await open(jobs[1])]).toEqual([101, 101]);
    const label = await send("PUT", `/api/v1/agents/${moved}/labels`, { site: "elsewhere" }, await adminToken());
    const removal = await send("DELETE", `/api/v1/agents/${deleted}`, undefined, await adminToken());
    expect([label.status, removal.status]).toEqual([200, 200]);
    await expect.poll(() => open(jobs[0]), { timeout: 5_000 }).toMatchObject({ status: 403 });
    expect(await open(jobs[0])).toEqual(await open(jobs[1]));
  });
});

describe("an account that emulates access points", () => {
  it("operates them without any grant, and no other account without a grant sees them", async () => {
    const spec = { access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 60 };
    const [owner, stranger] = [await signedUp([]), await signedUp([])];
    const spinUp = await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, owner.token);
    const [apId = ""] = ((await spinUp.json()) as { ap_ids: string[] }).ap_ids;
    const read = async (token: string) => (await send("GET", `/api/v1/agents/${apId}`, undefined, token)).status;
    expect([await read(owner.token), await read(stranger.token)]).toEqual([200, 404]);
    const listed = (await (await send("GET", "/api/v1/agents/", undefined, owner.token)).json()) as { ap_id: string }[];
    expect(listed.map(({ ap_id }) => ap_id)).toEqual([apId]);
    const command = async (token: string) =>
      (await send("POST", `/api/v1/send_command?command=reboot&agent_id=${apId}`, undefined, token)).status;
    expect(await command(stranger.token)).toBe(404);
    expect([200, 400]).toContain(await command(owner.token));
    const removed = await send("DELETE", `/api/v1/agents/${apId}`, undefined, owner.token);
    expect(removed.status).toBe(403);
  });

  it("may not start emulations as a viewer", async () => {
    const spec = { access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 60 };
    const { token } = await signedUp([{ role: "viewer", selector: "" }]);
    expect((await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, token)).status).toBe(403);
  });
});
