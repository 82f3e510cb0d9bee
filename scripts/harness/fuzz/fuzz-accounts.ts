import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { CreatedResources } from "../cleanup.ts";
import type { ApiClient } from "../client.ts";
import type { Twins } from "./twin.ts";
import { type Names, SECRET_MARK } from "./vocabulary.ts";

export interface Caller {
  name: string;
  /** As in the description of an operation. */
  kind: "admin" | "user" | "agent" | "app" | "enrolment" | "anonymous";
  authorization: string | undefined;
  /** Whether the service accepts its token. */
  isKnown: boolean;
  names: Names;
  /** Set for a caller that must not see some of the agents. */
  twins?: Twins;
}

/** Tokens that no login returns. */
export interface OtherTokens {
  /** An expired token of an administrator. */
  ended?: string;
  /** The token with which new access points register themselves. */
  enrolment?: string;
}

const NAME_FIELDS = { users: "username", agents: "ap_id", third_party_apps: "app_name" } as const;
type Kind = keyof typeof NAME_FIELDS;
const DOMAIN = "@fuzz.invalid";
const MEASURED = { canary: 42.5 };
const CONFIGURATION = { access_point_type: "LiFi", geolocation: { latitude: 51.5, longitude: -0.1 }, kept: ["é", 1] };

export const newSecret = (): string => `${SECRET_MARK}-${randomBytes(12).toString("base64url")}`;

const pathOf = (kind: Kind, name: string): string => `/api/v1/${kind}/${encodeURIComponent(name)}`;

/** The accounts of one round: the callers, accounts that requests may change, and canaries that nothing may change. */
export class FuzzAccounts {
  readonly #client: ApiClient;
  readonly #token: string;
  readonly #created = new CreatedResources();
  readonly #canary: string;
  readonly #canarySecret = newSecret();
  /** What each canary was when it was created, by path. */
  readonly #canaries = new Map<string, unknown>();

  constructor(client: ApiClient, adminToken: string, prefix: string) {
    this.#client = client;
    this.#token = adminToken;
    this.#canary = `${prefix}-canary`;
  }

  async #create(kind: Kind, name: string, secret: string, fields: object): Promise<void> {
    this.#created.add(pathOf(kind, name));
    const secretField = kind === "third_party_apps" ? "api_key" : "password";
    const body = { [NAME_FIELDS[kind]]: name, [secretField]: secret, ...fields };
    await this.#client.call(`/api/v1/${kind}/`, { token: this.#token, body });
  }

  /** Creates an account of each kind. */
  async #createEach(name: string, secret: string, configuration: object, permissions: object): Promise<void> {
    await this.#create("users", `${name}${DOMAIN}`, secret, { roles: ["user"] });
    await this.#create("agents", name, secret, { configuration });
    await this.#create("third_party_apps", name, secret, { permissions });
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

  async createCanaries(): Promise<void> {
    const [client, name, secret] = [this.#client, this.#canary, this.#canarySecret];
    await this.#createEach(name, secret, CONFIGURATION, { commands: false });
    const token = await client.logIn(name, secret, "agent");
    await client.call("/api/v1/agent_update/update", { token, body: { payload: MEASURED } });
    for (const path of [pathOf("users", `${name}${DOMAIN}`), pathOf("agents", name), pathOf("third_party_apps", name)])
      this.#canaries.set(path, await client.call(path, { token: this.#token }));
  }

  /** Returns a text for each change of the canaries: accounts, a password, and a measured value. */
  async changes(): Promise<string[]> {
    const changes: string[] = [];
    const compare = (what: string, now: unknown, before: unknown): void => {
      if (!isDeepStrictEqual(now, before)) changes.push(`${what} has changed: ${JSON.stringify(now)}`);
    };
    for (const [path, before] of this.#canaries)
      compare(path, await this.#client.call(path, { token: this.#token }).catch(String), before);
    try {
      const token = await this.#client.logIn(`${this.#canary}${DOMAIN}`, this.#canarySecret);
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${this.#canary}&metrics=canary&window=31d`;
      const { series } = await this.#client.call<Chart>(path, { token });
      const values = series.map(({ metric, points }) => [metric, points.map(({ value }) => value)]);
      compare("the measured value", values, [["canary", [MEASURED.canary]]]);
    } catch (error) {
      changes.push(`the data of the canary cannot be read: ${error}`);
    }
    return changes;
  }

  /** Creates an account of each kind, accounts that administrators may change, and returns everyone who calls the service. */
  async createCallers(prefix: string, { ended, enrolment }: OtherTokens): Promise<Caller[]> {
    const client = this.#client;
    const [caller, target, service] = [`${prefix}-caller`, `${prefix}-target`, `${prefix}-service`];
    const [user, secret] = [`${caller}${DOMAIN}`, newSecret()];
    await this.#createEach(caller, secret, { access_point_type: "WiFi" }, {});
    await this.#createEach(target, secret, {}, { ap_ids: [target] });
    await this.#create("third_party_apps", service, secret, { permissions: { broker: true, callbacks: true } });
    const manager = `${prefix}-manager${DOMAIN}`;
    await this.#create("users", manager, secret, { roles: ["user"] });
    const grants = [{ role: "manager", selector: `site=${prefix}` }];
    await client.call(`${pathOf("users", manager)}/grants`, { method: "PUT", token: this.#token, body: { grants } });
    await client.call(`${pathOf("agents", target)}/labels`, {
      method: "PUT",
      token: this.#token,
      body: { site: prefix },
    });
    const twins = { hidden: this.#canary, absent: `${prefix}-absent`, visible: target };
    const userToken = await client.logIn(user, secret);
    const details = "/api/v1/agent_details/request_all_agents_details";
    const job = await client.call<{ job_number: string }>(details, { method: "POST", token: userToken });

    const namesOf = (agents: string[], apps = agents): Names => {
      const users = agents.map((name) => `${name}${DOMAIN}`);
      return { users, agents, apps, jobs: [job.job_number, `${prefix}-stream`], secret };
    };
    // Callers with all rights do not know the canaries.
    const forAdmin = namesOf([target]);
    const forOthers = namesOf([target, this.#canary, caller], [target, this.#canary, caller, service]);
    const known = (name: string, kind: Caller["kind"], token: string, names = forOthers): Caller => {
      return { name, kind, authorization: `Bearer ${token}`, isKnown: true, names };
    };
    const unknown = (name: string, authorization?: string): Caller => {
      return { name, kind: "anonymous", authorization, isKnown: false, names: forOthers };
    };
    return [
      unknown("anonymous"),
      known("admin", "admin", this.#token, forAdmin),
      known("user", "user", userToken),
      { ...known("manager", "user", await client.logIn(manager, secret)), twins },
      known("agent", "agent", await client.logIn(caller, secret, "agent")),
      known("app", "app", await client.logIn(caller, secret, "third_party_app")),
      // It may act for any agent.
      known("service", "app", await client.logIn(service, secret, "third_party_app"), forAdmin),
      known("narrowed user", "user", await client.logIn(user, secret, "user", "agents:read")),
      ...(enrolment === undefined ? [] : [known("new access point", "enrolment", enrolment)]),
      ...(ended === undefined ? [] : [unknown("expired token", `Bearer ${ended}`)]),
      ...brokenTokens(this.#token).map((authorization) => unknown("broken token", authorization)),
    ];
  }
}

interface Chart {
  series: { metric: string; points: { value: number }[] }[];
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text));
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
  return [...tokens.map((one) => `Bearer ${one}`), "Bearer", `Basic ${btoa("admin:admin")}`, `Digest ${token}`, token];
}
