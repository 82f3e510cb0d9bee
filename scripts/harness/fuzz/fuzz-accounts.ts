import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { CreatedResources } from "../cleanup.ts";
import type { ApiClient } from "../client.ts";
import { type Names, SECRET_MARK } from "./vocabulary.ts";

/** The accounts of one round: the callers, accounts that requests may change, and canaries that nothing may change. */

export interface Caller {
  name: string;
  /** As in the description of an operation. */
  kind: "admin" | "user" | "agent" | "app" | "enrolment" | "anonymous";
  authorization: string | undefined;
  /** Whether the service accepts its token. */
  isKnown: boolean;
  names: Names;
}

/** Tokens that no login returns. */
export interface OtherTokens {
  /** An expired token of an administrator. */
  ended?: string;
  /** The token with which new access points register themselves. */
  enrolment?: string;
}

type Kind = "users" | "agents" | "third_party_apps";

const NAME_FIELDS: Record<Kind, string> = { users: "username", agents: "ap_id", third_party_apps: "app_name" };
const DOMAIN = "@fuzz.invalid";

export const newSecret = (): string => `${SECRET_MARK}-${randomBytes(12).toString("base64url")}`;

const pathOf = (kind: Kind, name: string): string => `/api/v1/${kind}/${encodeURIComponent(name)}`;

export class FuzzAccounts {
  readonly #client: ApiClient;
  readonly #token: string;
  readonly #created = new CreatedResources();

  constructor(client: ApiClient, adminToken: string) {
    this.#client = client;
    this.#token = adminToken;
  }

  async create(kind: Kind, name: string, secret: string, more: object): Promise<void> {
    this.#created.add(pathOf(kind, name));
    const secretField = kind === "third_party_apps" ? "api_key" : "password";
    const body = { [NAME_FIELDS[kind]]: name, [secretField]: secret, ...more };
    await this.#client.call(`/api/v1/${kind}/`, { token: this.#token, body });
  }

  read(kind: Kind, name: string): Promise<unknown> {
    return this.#client.call(pathOf(kind, name), { token: this.#token });
  }

  /** Records what a successful request may have created. */
  record(requestBody: Buffer, responseText: string): void {
    const [sent, received] = [parseObject(requestBody.toString()), parseObject(responseText)];
    for (const [kind, field] of Object.entries(NAME_FIELDS) as [Kind, string][]) {
      const name = sent[field];
      if (typeof name === "string")
        this.#created.add(pathOf(kind, kind === "users" ? name.trim().toLowerCase() : name));
    }
    if (Array.isArray(received.ap_ids)) this.#created.add(`/api/v1/emulator/${String(received.job_number)}`);
  }

  /** Deletes everything. Ignores failures: names may be invalid, or deleted already. */
  async remove(): Promise<void> {
    await this.#created.remove(this.#client, this.#token, 1);
  }

  /** Creates an account of each kind, accounts that administrators may change, and returns everyone who calls the service. */
  async createCallers(prefix: string, canaries: Canaries["names"], tokens: OtherTokens): Promise<Caller[]> {
    const client = this.#client;
    const secret = newSecret();
    const [user, agent, app, service] = [
      `${prefix}-user${DOMAIN}`,
      `${prefix}-agent`,
      `${prefix}-app`,
      `${prefix}-service`,
    ];
    await this.create("users", user, secret, { roles: ["user"] });
    await this.create("agents", agent, secret, { configuration: { access_point_type: "WiFi" } });
    await this.create("third_party_apps", app, secret, { permissions: {} });
    await this.create("third_party_apps", service, secret, { permissions: { broker: true, callbacks: true } });
    const userToken = await client.logIn(user, secret);

    const target = `${prefix}-target`;
    await this.create("users", `${target}${DOMAIN}`, secret, { roles: ["user"] });
    await this.create("agents", target, secret, { configuration: {} });
    await this.create("third_party_apps", target, secret, { permissions: { ap_ids: [target] } });
    const details = { method: "POST", token: userToken };
    const { job_number } = await client.call<{ job_number: string }>(
      "/api/v1/agent_details/request_all_agents_details",
      details,
    );

    const jobs = [job_number, `${prefix}-stream`];
    // Callers with all rights do not know the canaries.
    const forAdmin: Names = { users: [`${target}${DOMAIN}`], agents: [target], apps: [target], jobs, secret };
    const forOthers: Names = {
      users: [...forAdmin.users, ...canaries.users, user],
      agents: [...forAdmin.agents, ...canaries.agents, agent],
      apps: [...forAdmin.apps, ...canaries.apps, app, service],
      jobs,
      secret,
    };
    const known = (name: string, kind: Caller["kind"], token: string, names = forOthers): Caller => ({
      ...{ name, kind, authorization: `Bearer ${token}`, isKnown: true, names },
    });
    const unknown = (name: string, authorization?: string): Caller => ({
      name,
      kind: "anonymous",
      authorization,
      isKnown: false,
      names: forOthers,
    });
    return [
      unknown("anonymous"),
      known("admin", "admin", this.#token, forAdmin),
      known("user", "user", userToken),
      known("agent", "agent", await client.logIn(agent, secret, "agent")),
      known("app", "app", await client.logIn(app, secret, "third_party_app")),
      // It may act for any agent.
      known("service", "app", await client.logIn(service, secret, "third_party_app"), forAdmin),
      known("narrowed user", "user", await client.logIn(user, secret, "user", "agents:read")),
      ...(tokens.enrolment === undefined ? [] : [known("new access point", "enrolment", tokens.enrolment)]),
      ...(tokens.ended === undefined ? [] : [unknown("expired token", `Bearer ${tokens.ended}`)]),
      ...brokenTokens(this.#token).map((authorization) => unknown("broken token", authorization)),
    ];
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Returns variants of an administrator's token, each with one defect. */
function brokenTokens(token: string): string[] {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
  const tokens = [
    `${header}.${payload}.`,
    `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
    `${header}.${payload}.${"A".repeat(signature.length)}`,
    `${base64({ alg: "none", typ: "JWT" })}.${payload}.`,
    `${base64({ alg: "HS256", typ: "JWT" })}.${payload}.${signature}`,
    `${base64({ alg: "ES256", kid: "__proto__" })}.${payload}.${signature}`,
    `${base64({ alg: "ES256", kid: 7, crit: ["exp"] })}.${payload}.${signature}`,
    `${header}.${base64({ ...claims, exp: 9e15 })}.${signature}`,
    `${header}.${base64(null)}.${signature}`,
    ...["..", "a".repeat(5_000), "\u00ff\u00fe", "", ` ${token}`],
  ];
  const basic = Buffer.from("admin:admin").toString("base64");
  return [...tokens.map((one) => `Bearer ${one}`), "Bearer", `Basic ${basic}`, `Digest ${token}`, token];
}

const MEASURED = { canary: 42.5 };
const CONFIGURATION = { access_point_type: "LiFi", geolocation: { latitude: 51.5, longitude: -0.1 }, kept: ["é", 1] };

/** Accounts and a measured value that no request may change. */
export class Canaries {
  readonly names: Pick<Names, "users" | "agents" | "apps">;
  readonly #client: ApiClient;
  readonly #accounts: FuzzAccounts;
  readonly #secret = newSecret();
  /** What each account was when it was created. */
  readonly #records: { kind: Kind; name: string; record: unknown }[] = [];

  private constructor(client: ApiClient, accounts: FuzzAccounts, name: string) {
    this.#client = client;
    this.#accounts = accounts;
    this.names = { users: [`${name}${DOMAIN}`], agents: [name], apps: [name] };
  }

  static async create(client: ApiClient, accounts: FuzzAccounts, name: string): Promise<Canaries> {
    const canaries = new Canaries(client, accounts, name);
    await accounts.create("users", `${name}${DOMAIN}`, canaries.#secret, { roles: ["user"] });
    await accounts.create("agents", name, canaries.#secret, { configuration: CONFIGURATION });
    await accounts.create("third_party_apps", name, canaries.#secret, { permissions: { commands: false } });
    const token = await client.logIn(name, canaries.#secret, "agent");
    await client.call("/api/v1/agent_update/update", { token, body: { payload: MEASURED } });
    for (const kind of Object.keys(NAME_FIELDS) as Kind[]) {
      const account = kind === "users" ? `${name}${DOMAIN}` : name;
      canaries.#records.push({ kind, name: account, record: await accounts.read(kind, account) });
    }
    return canaries;
  }

  /** Returns a text for each change. */
  async changes(): Promise<string[]> {
    const changes: string[] = [];
    for (const { kind, name, record } of this.#records) {
      const now = await this.#accounts.read(kind, name).catch(String);
      if (!isDeepStrictEqual(now, record)) changes.push(`${kind} ${name} has changed: ${JSON.stringify(now)}`);
    }
    try {
      const token = await this.#client.logIn(this.names.users[0] ?? "", this.#secret);
      const query = `agent=${this.names.agents[0]}&metrics=${Object.keys(MEASURED)}&window=31d`;
      const chart = this.#client.call<{ series: Series[] }>(`/api/v1/metrics/agent_multi_metric_data?${query}`, {
        token,
      });
      const values = (await chart).series.map(({ metric, points }) => [metric, points.map(({ value }) => value)]);
      const expected = Object.entries(MEASURED).map(([metric, value]) => [metric, [value]]);
      if (!isDeepStrictEqual(values, expected))
        changes.push(`the measured value has changed: ${JSON.stringify(values)}`);
    } catch (error) {
      changes.push(`the data of the canary cannot be read: ${error}`);
    }
    return changes;
  }
}

interface Series {
  metric: string;
  points: { value: number }[];
}
