import { generateKeyPair, importJWK, type JWK, SignJWT } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { declaredRoutes } from "../../src/http/described.ts";
import {
  adminToken,
  appWith,
  newAgent,
  newApp,
  PASSWORD,
  request,
  send,
  settings,
  signedUp,
  uniqueEmail,
  uniqueName,
} from "./support.ts";

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
  "GET /docs",
  "GET /docs/style.css",
  "GET /reset-password",
  "GET /reset-password/style.css",
  "GET /reset-password/script.js",
];

type ObjectKind = "user" | "agent" | "app";
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
  who: Partial<Record<Caller, Reach>>;
}

const newUser = () => ({ username: uniqueEmail(), password: PASSWORD, roles: ["user"] });
const newAgentBody = () => ({ ap_id: uniqueName(), password: PASSWORD, configuration: {} });
const newAppBody = () => ({ app_name: uniqueName(), api_key: PASSWORD, permissions: {} });
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
  { route: "POST /api/v1/agent_update/update", body: () => ({ payload: { x: 1 } }), who: { agent: "yes" } },
  {
    route: "POST /api/v1/bridge/data",
    body: () => ({ messages: [{ ap_id: uniqueName(), received_at: 1, report: {} }] }),
    who: {},
  },
  { route: "GET /api/v1/agents/", who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" } },
  {
    route: "GET /api/v1/metrics/agent_details",
    who: { admin: "yes", user: "yes", app: "yes", "app of one agent": "yes" },
  },
  { route: "GET /api/v1/metrics/agent_data", query: "agent=", object: "agent", who: anyReader },
  { route: "GET /api/v1/metrics/agent_multi_metric_data", query: "metrics=x&agent=", object: "agent", who: anyReader },
  { route: "GET /api/v1/metrics/agent_metrics", query: "agent=", object: "agent", who: anyReader },
];

const CALLERS: Caller[] = ["admin", "user", "agent", "app", "app without permissions", "app of one agent"];
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

const someone = async (kind: ObjectKind): Promise<string> => (await account(kind)).name;
const nobody = (kind: ObjectKind): string => (kind === "user" ? uniqueEmail() : uniqueName());

const call = async ({ route, query, body }: Row, token: string, object = ""): Promise<number> => {
  const [method = "", path = ""] = route.split(" ");
  const name = encodeURIComponent(object);
  const target = query === undefined ? path.replace(/:\w+/, name) : `${path}?${query}${name}`;
  return (await send(method, target, body?.(), token)).status;
};

describe("the table", () => {
  it("knows every route that is registered", () => {
    const { routes } = appWith({});
    const registered = declaredRoutes(routes).map(({ method, path }) => `${method} ${path}`);
    expect([...PUBLIC, ...TABLE.map(({ route }) => route)].toSorted()).toEqual(registered.toSorted());
  });
});

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
    expect(await call(row, token, nobody(object))).toBe(reach === "any" ? 404 : 403);
    if (reach === "listed") expect(await call(row, token, listedAgent)).toBe(200);
    if (KIND_OF[caller] === object && caller !== "admin") {
      expect(await call(row, token, name)).toBe(reach === "any" || reach === "own" ? 200 : 403);
    }
  });

  it("no token at all, or one that is not good", async () => {
    const [method = "", path = ""] = row.route.split(" ");
    const target = path.replace(/:\w+/, "someone");
    expect((await request(target, { method })).status).toBe(401);
    for (const [fault, token] of await badTokens(settings.ADMIN_USERNAME ?? "", await adminToken())) {
      const response = await send(method, target, row.body?.(), token);
      expect(response.status, fault).toBe(401);
      expect(await response.json()).toEqual({ detail: "Could not validate credentials" });
    }
  });

  it("a token narrowed to another scope", async () => {
    const body = new URLSearchParams({
      username: settings.ADMIN_USERNAME ?? "",
      password: settings.ADMIN_PASSWORD ?? "",
      scope: "commands:send",
    });
    const response = await request("/api/v1/token/?login_type=user", { method: "POST", body });
    const { access_token } = (await response.json()) as { access_token: string };
    const status = await call(row, access_token, object === undefined ? "" : await someone(object));
    expect(status).toBe(row.route === "GET /api/v1/users/me" ? 200 : 403);
  });
});

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
