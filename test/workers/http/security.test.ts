import { beforeAll, describe, expect, it } from "vitest";
import { declaredRoutes } from "../../../src/http/route-registry.ts";
import {
  adminToken,
  appWith,
  bearer,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  settings,
  signedUp,
  tokenOf,
  uniqueEmail,
  uniqueName,
} from "../support.ts";
import { invalidTokens } from "./invalid-tokens.ts";

/**
 * Calls every operation as every kind of caller on every kind of object. The table states the permissions independently of the matrix in
 * the code. A route that is not in the table fails the suite.
 */

/** Operations that need no token. */
const PUBLIC = [
  "POST /api/v1/token/",
  "POST /api/v1/users/signup",
  "POST /api/v1/users/password-recovery",
  "POST /api/v1/users/reset-password",
  "GET /healthz",
  "GET /readyz",
  "GET /.well-known/jwks.json",
  "GET /openapi.json",
  "GET /asyncapi.json",
  "GET /docs",
  "GET /docs/style.css",
  "GET /",
  "GET /assets/:file{[\\w.-]+}",
  "GET /dashboard.json",
];

/** The owner of a job is a user here. */
type ObjectKind = "user" | "agent" | "app" | "group" | "job" | "emulator job" | "enrolment token";
/** The kinds of account, an app without permissions, and an app that is limited to one agent. */
type Caller = "admin" | "user" | "agent" | "app" | "app without permissions" | "app of one agent";
/**
 * The objects that a caller may access: any, only its own, only the listed agent; "yes" for operations without an object; "none" if all
 * objects are absent for it.
 */
type Access = "any" | "own" | "listed" | "yes" | "none";

interface Row {
  route: string;
  /** The kind of object that the path or the end of the query names. */
  object?: ObjectKind;
  query?: string;
  body?: () => object | string;
  /** Of the body, if it is not JSON. */
  contentType?: string;
  /** Any caller except an agent can claim an unused job number. */
  isClaimed?: true;
  /** Creates the object if it is absent. */
  isCreated?: true;
  /** Needs no scope: a token of any scope can access the caller's own objects. */
  needsNoScope?: true;
  access: Partial<Record<Caller, Access>>;
}

const CALLERS: Caller[] = ["admin", "user", "agent", "app", "app without permissions", "app of one agent"];
const newUser = () => ({ username: uniqueEmail(), password: PASSWORD, roles: ["user"] });
const newAgentBody = () => ({ ap_id: uniqueName(), password: PASSWORD, configuration: {} });
const newAppBody = () => ({ app_name: uniqueName(), api_key: PASSWORD, permissions: {} });
const jobAccess = {
  admin: "any",
  user: "own",
  agent: "own",
  app: "own",
  "app without permissions": "own",
  "app of one agent": "own",
} as const;
const callback = (kind: string): Row => ({
  route: `POST /api/v1/callback/${kind}`,
  query: "job_number=",
  object: "job",
  body: () => [],
  isClaimed: true,
  access: jobAccess,
});
const readAccess = { admin: "any", user: "any", agent: "own", app: "any", "app of one agent": "listed" } as const;

const viewerAccess = { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } as const;

const TABLE: Row[] = [
  { route: "POST /api/v1/users/public", body: newUser, access: { admin: "yes" } },
  { route: "GET /api/v1/users/", access: { admin: "yes" } },
  { route: "POST /api/v1/users/", body: newUser, access: { admin: "yes" } },
  { route: "GET /api/v1/users/me", access: { admin: "yes", user: "yes" } },
  { route: "GET /api/v1/users/:username", object: "user", access: { admin: "any", user: "own" } },
  {
    route: "PUT /api/v1/users/:username",
    object: "user",
    body: () => ({ password: PASSWORD }),
    access: { admin: "any", user: "own" },
  },
  { route: "DELETE /api/v1/users/:username", object: "user", access: { admin: "any", user: "own" } },
  { route: "GET /api/v1/users/:username/grants", object: "user", access: { admin: "any", user: "own" } },
  {
    route: "PUT /api/v1/users/:username/grants",
    object: "user",
    body: () => ({ grants: null }),
    access: { admin: "any" },
  },
  { route: "GET /api/v1/enrolment_tokens/", access: { admin: "yes" } },
  { route: "POST /api/v1/enrolment_tokens/", body: () => ({}), access: { admin: "yes" } },
  { route: "DELETE /api/v1/enrolment_tokens/:id", object: "enrolment token", access: { admin: "any" } },
  { route: "POST /api/v1/agents/public", body: newAgentBody, access: { admin: "yes" } },
  { route: "POST /api/v1/agents/", body: newAgentBody, access: { admin: "yes" } },
  { route: "GET /api/v1/agents/:ap_id", object: "agent", access: readAccess },
  {
    route: "PUT /api/v1/agents/:ap_id",
    object: "agent",
    body: () => ({ configuration: { a: 1 } }),
    access: { admin: "any", agent: "own" },
  },
  { route: "DELETE /api/v1/agents/:ap_id", object: "agent", access: { admin: "any" } },
  { route: "GET /api/v1/agents/:ap_id/labels", object: "agent", access: readAccess },
  {
    route: "PUT /api/v1/agents/:ap_id/labels",
    object: "agent",
    body: () => ({ floor: uniqueName() }),
    access: { admin: "any" },
  },
  { route: "GET /api/v1/labels", access: viewerAccess },
  {
    route: "POST /api/v1/labels",
    body: () => ({ selector: `site=${uniqueName()}`, labels: { floor: "1" } }),
    access: { admin: "yes" },
  },
  { route: "GET /api/v1/labels/export", query: "selector=site%3Dnone", access: viewerAccess },
  {
    route: "POST /api/v1/labels/import",
    body: () => "ap_id,floor\n",
    contentType: "text/csv",
    access: { admin: "yes" },
  },
  { route: "GET /api/v1/groups/", access: viewerAccess },
  // A limited app sees no groups.
  {
    route: "GET /api/v1/groups/:name",
    object: "group",
    access: { admin: "any", user: "any", app: "any", "app of one agent": "none" },
  },
  {
    route: "PUT /api/v1/groups/:name",
    object: "group",
    isCreated: true,
    body: () => ({ selector: "" }),
    access: { admin: "any" },
  },
  { route: "DELETE /api/v1/groups/:name", object: "group", access: { admin: "any" } },
  { route: "GET /api/v1/third_party_apps/", access: { admin: "yes" } },
  { route: "POST /api/v1/third_party_apps/", body: newAppBody, access: { admin: "yes" } },
  {
    route: "GET /api/v1/third_party_apps/:app_name",
    object: "app",
    access: { admin: "any", app: "own", "app without permissions": "own", "app of one agent": "own" },
  },
  {
    route: "PUT /api/v1/third_party_apps/:app_name",
    object: "app",
    body: () => ({ permissions: {} }),
    access: { admin: "any" },
  },
  {
    route: "GET /api/v1/third_party_apps/:app_name/grants",
    object: "app",
    access: { admin: "any", app: "own", "app without permissions": "own", "app of one agent": "own" },
  },
  {
    route: "PUT /api/v1/third_party_apps/:app_name/grants",
    object: "app",
    body: () => ({ grants: null }),
    access: { admin: "any" },
  },
  { route: "DELETE /api/v1/third_party_apps/:app_name", object: "app", access: { admin: "any" } },
  { route: "GET /api/v1/audit/", access: { admin: "yes" } },
  { route: "GET /metrics", access: { admin: "yes" } },
  { route: "POST /api/v1/agent_update/update", body: () => ({ payload: { x: 1 } }), access: { agent: "yes" } },
  {
    route: "POST /api/v1/bridge/data",
    body: () => ({ messages: [{ ap_id: uniqueName(), received_at: 1, report: {} }] }),
    access: {},
  },
  { route: "GET /api/v1/agents/", access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  { route: "GET /api/v1/overview", access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  {
    route: "GET /api/v1/metrics/agent_details",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_details/request_all_agents_details",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_data/request_agent_data",
    query: "start_time=1000&end_time=2000&agent_id=",
    object: "agent",
    access: readAccess,
  },
  {
    route: "POST /api/v1/agent_data/request_live_data",
    query: "selector=none&duration=1",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/send_command",
    query: "command=ping&agent_id=",
    object: "agent",
    access: { admin: "any", user: "any", app: "any", "app of one agent": "listed" },
  },
  {
    route: "POST /api/v1/commands",
    body: () => ({ command: "ping", agents: { ap_ids: [uniqueName()] } }),
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/emulator/spinup",
    body: () => ({
      emulators: [{ access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 1 }],
    }),
    access: { admin: "yes", user: "yes", app: "yes" },
  },
  {
    route: "GET /api/v1/places",
    query: "text=bri",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "GET /api/v1/emulator/",
    needsNoScope: true,
    access: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])),
  },
  { route: "DELETE /api/v1/emulator/:job_number", object: "emulator job", access: jobAccess },
  ...["agent_data", "agent_details", "emulator", "command"].map(callback),
  {
    route: "GET /api/v1/jobs/",
    needsNoScope: true,
    access: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])),
  },
  { route: "GET /api/v1/jobs/:job_number", object: "job", access: jobAccess },
  { route: "DELETE /api/v1/jobs/:job_number", object: "job", access: jobAccess },
  ...["ws", "callback/agent_data/ws", "callback/agent_details/ws", "callback/emulator/ws"].map(
    (path): Row => ({ route: `GET /api/v1/${path}/:job_number`, object: "job", isClaimed: true, access: jobAccess }),
  ),
  { route: "GET /api/v1/metrics/agent_data", query: "agent=", object: "agent", access: readAccess },
  {
    route: "GET /api/v1/metrics/agent_multi_metric_data",
    query: "metrics=x&agent=",
    object: "agent",
    access: readAccess,
  },
  {
    route: "GET /api/v1/metrics/aggregate",
    query: "metrics=x",
    access: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  { route: "GET /api/v1/metrics/agent_metrics", query: "agent=", object: "agent", access: readAccess },
];

const KIND_OF: Record<Caller, ObjectKind> = {
  admin: "user",
  user: "user",
  agent: "agent",
  app: "app",
  "app without permissions": "app",
  "app of one agent": "app",
};
const NO_PERMISSIONS = { agents: false, data: false, commands: false, emulator: false };

interface Account {
  name: string;
  token: string;
}

let listedAgent: string;

async function account(caller: Caller): Promise<Account> {
  switch (caller) {
    case "admin":
      return { name: settings.ADMIN_USERNAME ?? "", token: await adminToken() };
    case "user": {
      const { username: name, token } = await signedUp();
      return { name, token };
    }
    case "agent": {
      const { apId: name, token } = await newAgent();
      return { name, token };
    }
    default: {
      const limits = caller === "app of one agent" ? { ap_ids: [listedAgent] } : {};
      const { appName: name, token } = await newApp(caller === "app without permissions" ? NO_PERMISSIONS : limits);
      return { name, token };
    }
  }
}

const jobOf = async (token: string): Promise<string> => {
  const job = uniqueName();
  expect((await send("POST", `/api/v1/callback/agent_data?job_number=${job}`, [], token)).status).toBe(200);
  return job;
};
const emulatorJobOf = async (token: string): Promise<string> => {
  const spec = { access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 1 };
  const response = await send("POST", "/api/v1/emulator/spinup", { emulators: [spec] }, token);
  return ((await response.json()) as { job_number: string }).job_number;
};
const newEnrolmentToken = async (): Promise<string> => {
  const response = await send("POST", "/api/v1/enrolment_tokens/", {}, await adminToken());
  return ((await response.json()) as { id: string }).id;
};
const foreignObject = async (kind: ObjectKind): Promise<string> => {
  if (kind === "job") return await jobOf((await signedUp()).token);
  if (kind === "group") {
    const name = uniqueName();
    expect((await send("PUT", `/api/v1/groups/${name}`, { selector: "" }, await adminToken())).status).toBe(200);
    return name;
  }
  if (kind === "emulator job") return await emulatorJobOf((await signedUp()).token);
  if (kind === "enrolment token") return await newEnrolmentToken();
  return (await account(kind)).name;
};
const unusedName = (kind: ObjectKind): string => (kind === "user" ? uniqueEmail() : uniqueName());

const call = async ({ route, query, body, contentType }: Row, token: string, object = ""): Promise<number> => {
  const [method = "", path = ""] = route.split(" ");
  const name = encodeURIComponent(object);
  const target = query === undefined ? path.replace(/:\w+/, name) : `${path}?${query}${name}`;
  if (!path.includes("/ws/")) return (await send(method, target, body?.(), token, contentType)).status;
  const { status, webSocket } = await request(target, { headers: { Upgrade: "websocket", ...bearer(token) } });
  webSocket?.accept();
  webSocket?.close(1000);
  // 101 is success, as 200 is for the other operations.
  return status === 101 ? 200 : status;
};

describe("the permission table", () => {
  it("has every registered route", () => {
    const { routes } = appWith({});
    const registered = declaredRoutes(routes).map(({ method, path }) => `${method} ${path}`);
    expect([...PUBLIC, ...TABLE.map(({ route }) => route)].toSorted()).toEqual(registered.toSorted());
  });
});

/** Shared by all rows and created at the first use. */
let invalid: ReturnType<typeof invalidTokens> | undefined;
let narrowed: Promise<string> | undefined;

describe.each(TABLE)("$route", (row) => {
  const { object, access: accessOf } = row;
  let callers: Map<Caller, Account>;

  beforeAll(async () => {
    listedAgent ??= (await newAgent()).apId;
    callers = new Map(await Promise.all(CALLERS.map(async (caller) => [caller, await account(caller)] as const)));
  });

  it.each(CALLERS)("is allowed or forbidden as the table says for: %s", async (caller) => {
    const { name, token } = callers.get(caller) ?? { name: "", token: "" };
    const access = accessOf[caller];
    if (object === undefined) {
      expect(await call(row, token)).toBe(access === "yes" ? 200 : 403);
      return;
    }
    // A caller without access gets the same response for a foreign and for a missing object.
    expect(await call(row, token, await foreignObject(object))).toBe(statusOfForeign(access));
    expect(await call(row, token, unusedName(object))).toBe(statusOfMissing(row, caller));
    // An administrator that posts to a job number does not become its owner.
    if (object === "job" && caller !== "agent" && caller !== "admin")
      expect(await call(row, token, await jobOf(token))).toBe(200);
    if (access === "listed") expect(await call(row, token, listedAgent)).toBe(200);
    if (KIND_OF[caller] === object && caller !== "admin") {
      expect(await call(row, token, name)).toBe(access === "any" || access === "own" ? 200 : 403);
    }
  });

  it("rejects a missing or invalid token with 401", async () => {
    const [method = "", path = ""] = row.route.split(" ");
    const target = path.replace(/:\w+/, "name");
    expect((await request(target, { method })).status).toBe(401);
    invalid ??= invalidTokens(settings.ADMIN_USERNAME ?? "", await adminToken());
    for (const [defect, token] of await invalid) {
      const response = await send(method, target, row.body?.(), token);
      expect(response.status, defect).toBe(401);
      expect(await response.json()).toEqual({ detail: "Could not validate credentials" });
    }
  });

  it("rejects a token of another scope with 403", async () => {
    // No operation of the table needs this scope.
    narrowed ??= tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", "broker:use");
    const status = await call(row, await narrowed, object === undefined ? "" : await foreignObject(object));
    expect(status).toBe(row.route === "GET /api/v1/users/me" || row.needsNoScope ? 200 : 403);
  });
});

function statusOfForeign(access: Access | undefined): number {
  if (access === "none") return 404;
  return access === "any" ? 200 : 403;
}

/** Returns the status for an object that does not exist. */
function statusOfMissing({ access, object, isClaimed, isCreated }: Row, caller: Caller): number {
  if (isClaimed) return caller === "agent" ? 403 : 200;
  if (isCreated) return statusOfForeign(access[caller]);
  if (access[caller] === "none") return 404;
  // 404 reveals nothing for job numbers: a caller can also learn that a number is unused by using it.
  return access[caller] === "any" || object?.endsWith("job") ? 404 : 403;
}
