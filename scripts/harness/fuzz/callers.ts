import type { Api } from "../api.ts";
import { type Accounts, newSecret } from "./fuzz-accounts.ts";
import type { Names } from "./vocabulary.ts";

/** Everybody who might call, and whom they know of. */

export interface Caller {
  name: string;
  /** As the document calls it. */
  kind: "admin" | "user" | "agent" | "app" | "enrolment" | "nobody";
  authorization: string | undefined;
  /** Whether the service has reason to let it in. */
  isKnown: boolean;
  names: Names;
}

/** Tokens that nobody gets by logging in. */
export interface OtherTokens {
  /** An administrator's, whose time is over. */
  ended?: string;
  /** With which new access points register themselves. */
  enrolment?: string;
}

export interface CallersOptions {
  api: Api;
  accounts: Accounts;
  adminToken: string;
  /** Of all names that are made. */
  prefix: string;
  /** Accounts that nobody but an administrator may change, and no administrator does. */
  canaries: Pick<Names, "users" | "agents" | "apps">;
  tokens: OtherTokens;
}

/** Makes an account of each kind, and some that an administrator may do anything to. */
export async function makeCallers(options: CallersOptions): Promise<Caller[]> {
  const { api, accounts, adminToken, prefix, canaries, tokens } = options;
  const user = `${prefix}-user@fuzz.invalid`;
  const [agent, app, service] = [`${prefix}-agent`, `${prefix}-app`, `${prefix}-service`];
  const secret = newSecret();
  await accounts.make("users", user, secret, { roles: ["user"] });
  await accounts.make("agents", agent, secret, { configuration: { access_point_type: "WiFi" } });
  await accounts.make("third_party_apps", app, secret, { permissions: {} });
  await accounts.make("third_party_apps", service, secret, { permissions: { broker: true, callbacks: true } });
  const userToken = await api.logIn(user, secret);

  const prey = { users: `${prefix}-prey@fuzz.invalid`, agents: `${prefix}-prey`, third_party_apps: `${prefix}-prey` };
  await accounts.make("users", prey.users, secret, { roles: ["user"] });
  await accounts.make("agents", prey.agents, secret, { configuration: {} });
  await accounts.make("third_party_apps", prey.third_party_apps, secret, { permissions: { ap_ids: [prey.agents] } });
  const { job_number: job } = await api.call<{ job_number: string }>(
    "POST",
    "/api/v1/agent_details/request_all_agents_details",
    userToken,
  );

  const jobs = [job, `${prefix}-stream`];
  const forAdmin: Names = { users: [prey.users], agents: [prey.agents], apps: [prey.third_party_apps], jobs, secret };
  const forAll: Names = {
    users: [...forAdmin.users, ...canaries.users, user],
    agents: [...forAdmin.agents, ...canaries.agents, agent],
    apps: [...forAdmin.apps, ...canaries.apps, app, service],
    jobs,
    secret,
  };
  const known = (name: string, kind: Caller["kind"], token: string, names = forAll): Caller => ({
    name,
    kind,
    authorization: `Bearer ${token}`,
    isKnown: true,
    names,
  });
  const unknown = (name: string, authorization?: string): Caller => ({
    name,
    kind: "nobody",
    authorization,
    isKnown: false,
    names: forAll,
  });
  return [
    unknown("nobody"),
    known("admin", "admin", adminToken, forAdmin),
    known("user", "user", userToken),
    known("agent", "agent", await api.logIn(agent, secret, "agent")),
    known("app", "app", await api.logIn(app, secret, "third_party_app")),
    // It may speak for any agent.
    known("service", "app", await api.logIn(service, secret, "third_party_app"), forAdmin),
    known("narrowed user", "user", await api.logIn(user, secret, "user", "agents:read")),
    ...(tokens.enrolment === undefined ? [] : [known("access point to be", "enrolment", tokens.enrolment)]),
    ...(tokens.ended === undefined ? [] : [unknown("ended token", `Bearer ${tokens.ended}`)]),
    ...brokenTokens(adminToken).map((authorization) => unknown("broken token", authorization)),
  ];
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** An administrator's token, but for something. */
function brokenTokens(token: string): string[] {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
  return [
    `Bearer ${header}.${payload}.`,
    `Bearer ${header}.${payload}.${signature.slice(0, -4)}AAAA`,
    `Bearer ${header}.${payload}.${"A".repeat(signature.length)}`,
    `Bearer ${base64({ alg: "none", typ: "JWT" })}.${payload}.`,
    `Bearer ${base64({ alg: "HS256", typ: "JWT" })}.${payload}.${signature}`,
    `Bearer ${base64({ alg: "ES256", kid: "__proto__" })}.${payload}.${signature}`,
    `Bearer ${base64({ alg: "ES256", kid: 7, crit: ["exp"] })}.${payload}.${signature}`,
    `Bearer ${header}.${base64({ ...claims, exp: 9e15 })}.${signature}`,
    `Bearer ${header}.${base64(null)}.${signature}`,
    `Bearer ..`,
    `Bearer ${"a".repeat(5_000)}`,
    `Bearer \u00ff\u00fe`,
    "Bearer",
    "Bearer ",
    `Bearer  ${token}`,
    `Basic ${Buffer.from("admin:admin").toString("base64")}`,
    `Digest ${token}`,
    token,
  ];
}
