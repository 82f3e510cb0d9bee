import { generateKeyPair, importJWK, type JWK, SignJWT } from "jose";
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

/**
 * Every operation against every kind of caller and every kind of object. The table says who may do what, independently of the
 * permission matrix in the code; a route that it does not know fails the suite.
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

/** A job's owner is a user here. */
type ObjectKind = "user" | "agent" | "app" | "job" | "emulator job";
/** Besides the kinds of account: an app without any permission, and one that may touch one agent only. */
type Caller = "admin" | "user" | "agent" | "app" | "app without permissions" | "app of one agent";
/** Which objects a caller reaches: any, only itself, only the one agent that it is limited to; for what has no object: yes. */
type Reach = "any" | "own" | "listed" | "yes";

interface Row {
  route: string;
  /** The kind of account that the path names, or the end of the query. */
  object?: ObjectKind;
  query?: string;
  body?: () => object;
  /** A number that nobody has used is anybody's but an agent's. */
  isClaimed?: true;
  /** What is one's own is in reach of any token, however narrowed. */
  isFree?: true;
  who: Partial<Record<Caller, Reach>>;
}

const CALLERS: Caller[] = ["admin", "user", "agent", "app", "app without permissions", "app of one agent"];
const newUser = () => ({ username: uniqueEmail(), password: PASSWORD, roles: ["user"] });
const newAgentBody = () => ({ ap_id: uniqueName(), password: PASSWORD, configuration: {} });
const newAppBody = () => ({ app_name: uniqueName(), api_key: PASSWORD, permissions: {} });
const ofJobs = {
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
  who: ofJobs,
});
const anyReader = { admin: "any", user: "any", agent: "own", app: "any", "app of one agent": "listed" } as const;

const TABLE: Row[] = [
  { route: "POST /api/v1/users/public", body: newUser, who: { admin: "yes" } },
  { route: "GET /api/v1/users/", who: { admin: "yes" } },
  { route: "POST /api/v1/users/", body: newUser, who: { admin: "yes" } },
  { route: "GET /api/v1/users/me", who: { admin: "yes", user: "yes" } },
  { route: "GET /api/v1/users/:username", object: "user", who: { admin: "any", user: "own" } },
  {
    route: "PUT /api/v1/users/:username",
    object: "user",
    body: () => ({ password: PASSWORD }),
    who: { admin: "any", user: "own" },
  },
  { route: "DELETE /api/v1/users/:username", object: "user", who: { admin: "any", user: "own" } },
  { route: "POST /api/v1/agents/public", body: newAgentBody, who: { admin: "yes" } },
  { route: "POST /api/v1/agents/", body: newAgentBody, who: { admin: "yes" } },
  { route: "GET /api/v1/agents/:ap_id", object: "agent", who: anyReader },
  {
    route: "PUT /api/v1/agents/:ap_id",
    object: "agent",
    body: () => ({ configuration: { a: 1 } }),
    who: { admin: "any", agent: "own" },
  },
  { route: "DELETE /api/v1/agents/:ap_id", object: "agent", who: { admin: "any" } },
  { route: "GET /api/v1/third_party_apps/", who: { admin: "yes" } },
  { route: "POST /api/v1/third_party_apps/", body: newAppBody, who: { admin: "yes" } },
  {
    route: "GET /api/v1/third_party_apps/:app_name",
    object: "app",
    who: { admin: "any", app: "own", "app without permissions": "own", "app of one agent": "own" },
  },
  {
    route: "PUT /api/v1/third_party_apps/:app_name",
    object: "app",
    body: () => ({ permissions: {} }),
    who: { admin: "any" },
  },
  { route: "DELETE /api/v1/third_party_apps/:app_name", object: "app", who: { admin: "any" } },
  { route: "GET /api/v1/audit/", who: { admin: "yes" } },
  { route: "GET /metrics", who: { admin: "yes" } },
  { route: "POST /api/v1/agent_update/update", body: () => ({ payload: { x: 1 } }), who: { agent: "yes" } },
  {
    route: "POST /api/v1/bridge/data",
    body: () => ({ messages: [{ ap_id: uniqueName(), received_at: 1, report: {} }] }),
    who: {},
  },
  { route: "GET /api/v1/agents/", who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  { route: "GET /api/v1/overview", who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  {
    route: "GET /api/v1/metrics/agent_details",
    who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_details/request_all_agents_details",
    who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/agent_data/request_agent_data",
    query: "start_time=1000&end_time=2000&agent_id=",
    object: "agent",
    who: anyReader,
  },
  {
    route: "POST /api/v1/send_command",
    query: "command=ping&agent_id=",
    object: "agent",
    who: { admin: "any", user: "any", app: "any", "app of one agent": "listed" },
  },
  {
    route: "POST /api/v1/commands",
    body: () => ({ command: "ping", agents: { ap_ids: [uniqueName()] } }),
    who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  {
    route: "POST /api/v1/emulator/spinup",
    body: () => ({
      emulators: [{ access_point_type: "5G", num_access_points: 1, locations: ["1,1"], num_devices: 1, duration: 1 }],
    }),
    who: { admin: "yes", user: "yes", app: "yes" },
  },
  {
    route: "GET /api/v1/places",
    query: "text=bri",
    who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  { route: "GET /api/v1/emulator/", isFree: true, who: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])) },
  { route: "DELETE /api/v1/emulator/:job_number", object: "emulator job", who: ofJobs },
  ...["agent_data", "agent_details", "emulator", "command"].map(callback),
  { route: "GET /api/v1/jobs/", isFree: true, who: Object.fromEntries(CALLERS.map((caller) => [caller, "yes"])) },
  { route: "GET /api/v1/jobs/:job_number", object: "job", who: ofJobs },
  { route: "DELETE /api/v1/jobs/:job_number", object: "job", who: ofJobs },
  ...["ws", "callback/agent_data/ws", "callback/agent_details/ws", "callback/emulator/ws"].map(
    (path): Row => ({ route: `GET /api/v1/${path}/:job_number`, object: "job", isClaimed: true, who: ofJobs }),
  ),
  { route: "GET /api/v1/metrics/agent_data", query: "agent=", object: "agent", who: anyReader },
  { route: "GET /api/v1/metrics/agent_multi_metric_data", query: "metrics=x&agent=", object: "agent", who: anyReader },
  { route: "GET /api/v1/metrics/agent_metrics", query: "agent=", object: "agent", who: anyReader },
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
const someone = async (kind: ObjectKind): Promise<string> => {
  if (kind === "job") return await jobOf((await signedUp()).token);
  if (kind === "emulator job") return await emulatorJobOf((await signedUp()).token);
  return (await account(kind)).name;
};
const nobody = (kind: ObjectKind): string => (kind === "user" ? uniqueEmail() : uniqueName());

const call = async ({ route, query, body }: Row, token: string, object = ""): Promise<number> => {
  const [method = "", path = ""] = route.split(" ");
  const name = encodeURIComponent(object);
  const target = query === undefined ? path.replace(/:\w+/, name) : `${path}?${query}${name}`;
  if (!path.includes("/ws/")) return (await send(method, target, body?.(), token)).status;
  const { status, webSocket } = await request(target, { headers: { Upgrade: "websocket", ...bearer(token) } });
  webSocket?.accept();
  webSocket?.close(1000);
  // As the others say yes.
  return status === 101 ? 200 : status;
};

describe("the table", () => {
  it("knows every route that is registered", () => {
    const { routes } = appWith({});
    const registered = declaredRoutes(routes).map(({ method, path }) => `${method} ${path}`);
    expect([...PUBLIC, ...TABLE.map(({ route }) => route)].toSorted()).toEqual(registered.toSorted());
  });
});

/** The same for every row; made when first needed. */
let bad: ReturnType<typeof badTokens> | undefined;
let narrowed: Promise<string> | undefined;

describe.each(TABLE)("$route", (row) => {
  const { object, who } = row;
  let callers: Map<Caller, Account>;

  beforeAll(async () => {
    listedAgent ??= (await newAgent()).apId;
    callers = new Map(await Promise.all(CALLERS.map(async (caller) => [caller, await account(caller)] as const)));
  });

  it.each(CALLERS)("%s", async (caller) => {
    const { name, token } = callers.get(caller) ?? { name: "", token: "" };
    const reach = who[caller];
    if (object === undefined) {
      expect(await call(row, token)).toBe(reach === "yes" ? 200 : 403);
      return;
    }
    // Someone else's and nobody's object look alike to a caller that reaches neither.
    expect(await call(row, token, await someone(object))).toBe(reach === "any" ? 200 : 403);
    expect(await call(row, token, nobody(object))).toBe(ofNobody(row, caller));
    // An administrator that posts to a number does not take it.
    if (object === "job" && caller !== "agent" && caller !== "admin")
      expect(await call(row, token, await jobOf(token))).toBe(200);
    if (reach === "listed") expect(await call(row, token, listedAgent)).toBe(200);
    if (KIND_OF[caller] === object && caller !== "admin") {
      expect(await call(row, token, name)).toBe(reach === "any" || reach === "own" ? 200 : 403);
    }
  });

  it("no token at all, or one that is not good", async () => {
    const [method = "", path = ""] = row.route.split(" ");
    const target = path.replace(/:\w+/, "someone");
    expect((await request(target, { method })).status).toBe(401);
    bad ??= badTokens(settings.ADMIN_USERNAME ?? "", await adminToken());
    for (const [fault, token] of await bad) {
      const response = await send(method, target, row.body?.(), token);
      expect(response.status, fault).toBe(401);
      expect(await response.json()).toEqual({ detail: "Could not validate credentials" });
    }
  });

  it("a token narrowed to another scope", async () => {
    // One that no operation of the table needs.
    narrowed ??= tokenOf(settings.ADMIN_USERNAME ?? "", settings.ADMIN_PASSWORD ?? "", "user", "broker:use");
    const status = await call(row, await narrowed, object === undefined ? "" : await someone(object));
    expect(status).toBe(row.route === "GET /api/v1/users/me" || row.isFree ? 200 : 403);
  });
});

/** What is answered about an object that does not exist. */
function ofNobody({ who, object, isClaimed }: Row, caller: Caller): number {
  if (isClaimed) return caller === "agent" ? 403 : 200;
  // That a number is not used yet can be learned by using it: no secret.
  return who[caller] === "any" || object?.endsWith("job") ? 404 : 403;
}

/** Tokens for `subject` that are each wrong in one way. `good` is what a right one looks like. */
async function badTokens(subject: string, good: string): Promise<[string, string][]> {
  const [signingKey] = JSON.parse(settings.JWT_KEYS ?? "") as (JWK & { kid: string })[];
  if (signingKey === undefined) throw new Error("no key");
  const [header = "", claims = "", signature = ""] = good.split(".");
  const { ver } = JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))) as { ver: number };
  const issuer = "multi-access-network-controller";
  const sign = async (
    key: CryptoKey | Uint8Array,
    protectedHeader: { alg: string; kid?: string },
    change: object = {},
  ) =>
    await new SignJWT({
      login_type: "user",
      roles: ["admin"],
      scope: "users:manage",
      ver,
      jti: "x",
      sub: subject,
      ...change,
    })
      .setProtectedHeader(protectedHeader)
      .setIssuer(issuer)
      .setAudience(issuer)
      .setIssuedAt()
      .setExpirationTime("1h")
      .sign(key);
  const ours = await importJWK(signingKey, "ES256");
  const { privateKey: theirs } = await generateKeyPair("ES256");
  const { d: _, ...publicKey } = signingKey;
  const kid = signingKey.kid;
  const now = Math.floor(Date.now() / 1000);
  const expired = new SignJWT({ login_type: "user", roles: ["admin"], scope: "users:manage", ver, jti: "x" })
    .setProtectedHeader({ alg: "ES256", kid })
    .setSubject(subject)
    .setIssuer(issuer)
    .setAudience(issuer)
    .setIssuedAt(now - 7200)
    .setExpirationTime(now - 3600);
  return [
    ["malformed", "a.b.c"],
    ["not a JWT", "token"],
    ["expired", await expired.sign(ours)],
    ["not valid yet", await sign(ours, { alg: "ES256", kid }, { nbf: now + 3600 })],
    ["wrong signature", `${header}.${claims}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`],
    ["signed by another key", await sign(theirs, { alg: "ES256", kid })],
    ["foreign kid", await sign(theirs, { alg: "ES256", kid: "theirs" })],
    ["no kid", await sign(ours, { alg: "ES256" })],
    ["alg none", `${btoa('{"alg":"none"}').replaceAll("=", "")}.${claims}.`],
    [
      "HS256 with the public key",
      await sign(new TextEncoder().encode(JSON.stringify(publicKey)), { alg: "HS256", kid }),
    ],
    ["of an earlier version of the account", await sign(ours, { alg: "ES256", kid }, { ver: ver - 1 })],
    ["of an account that is gone", await sign(ours, { alg: "ES256", kid }, { sub: uniqueEmail() })],
  ];
}
