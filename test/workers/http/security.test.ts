import { beforeAll, describe, expect, it } from "vitest";
import { declaredRoutes } from "../../../src/http/route-registry.ts";
import { newAlert } from "../alerting/requests.ts";
import {
  adminToken,
  appWith,
  bearer,
  newAgent,
  newApp,
  request,
  send,
  settings,
  signedUp,
  tokenOf,
  uniqueEmail,
  uniqueName,
} from "../support.ts";
import { invalidTokens } from "./invalid-tokens.ts";
import { type Access, CALLERS, type Caller, type ObjectKind, type Row } from "./permission-row.ts";
import { newRuleBody, PUBLIC, TABLE } from "./permission-table.ts";

/**
 * Calls every operation as every kind of caller on every kind of object. The table states the permissions independently of the matrix in
 * the code. A route that is not in the table fails the suite.
 */

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
const subscriptionOf = async (token: string): Promise<string> => {
  const target = { kind: "webhook", address: "https://receiver.invalid/" };
  const response = await send("POST", "/api/v1/subscriptions/", { name: "x", target }, token);
  return ((await response.json()) as { id: string }).id;
};
const created = async (path: string, body: object): Promise<string> => {
  const response = await send("POST", path, body, await adminToken());
  return ((await response.json()) as { id: string }).id;
};
const foreignObject = async (kind: ObjectKind): Promise<string> => {
  if (kind === "alert rule") return await created("/api/v1/alerts/rules", newRuleBody());
  if (kind === "alert") return await newAlert();
  if (kind === "silence") {
    const until = new Date(Date.now() + 5_000).toISOString();
    return await created("/api/v1/alerts/silences", { selector: `site=${uniqueName()}`, until });
  }
  if (kind === "job") return await jobOf((await signedUp()).token);
  if (kind === "group") {
    const name = uniqueName();
    expect((await send("PUT", `/api/v1/groups/${name}`, { selector: "" }, await adminToken())).status).toBe(200);
    return name;
  }
  if (kind === "emulator job") return await emulatorJobOf((await signedUp()).token);
  if (kind === "enrolment token") return await newEnrolmentToken();
  if (kind === "subscription") return await subscriptionOf((await signedUp()).token);
  return (await account(kind)).name;
};
const unusedName = (kind: ObjectKind): string => (kind === "user" ? uniqueEmail() : uniqueName());

const call = async ({ route, query, body, contentType }: Row, token: string, object = ""): Promise<number> => {
  const [method = "", path = ""] = route.split(" ");
  const name = encodeURIComponent(object);
  const target = query === undefined ? path.replace(/:\w+/, name) : `${path}?${query}${name}`;
  if (!/\/ws(\/|$)/.test(path)) {
    const { status } = await send(method, target, body?.(), token, contentType);
    // 204 is success without a body.
    return status === 204 ? 200 : status;
  }
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
    if (object === "subscription" && access === "visible")
      expect(await call(row, token, await subscriptionOf(token))).toBe(200);
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
  if (access === "none" || access === "visible") return 404;
  return access === "any" ? 200 : 403;
}

/** Returns the status for an object that does not exist. */
function statusOfMissing({ access, object, isClaimed, isCreated }: Row, caller: Caller): number {
  if (isClaimed) return caller === "agent" ? 403 : 200;
  if (isCreated) return statusOfForeign(access[caller]);
  if (access[caller] === "none" || access[caller] === "visible") return 404;
  // 404 reveals nothing for job numbers: a caller can also learn that a number is unused by using it.
  return access[caller] === "any" || object?.endsWith("job") ? 404 : 403;
}
