import { isDeepStrictEqual } from "node:util";
import type { Api } from "../api.ts";
import { type Account, type Accounts, newSecret } from "./fuzz-accounts.ts";
import type { Names } from "./vocabulary.ts";

interface Kept {
  account: Account;
  record: unknown;
}

/** Accounts and a measured value that nothing the fuzzer does may change. */
export class Canaries {
  readonly names: Pick<Names, "users" | "agents" | "apps">;
  readonly #api: Api;
  readonly #accounts: Accounts;
  readonly #records: readonly Kept[];
  readonly #login: { username: string; password: string };

  private constructor(api: Api, accounts: Accounts, prefix: string, secret: string, records: readonly Kept[]) {
    this.#api = api;
    this.#accounts = accounts;
    this.#records = records;
    this.names = { users: [`${prefix}@fuzz.invalid`], agents: [prefix], apps: [prefix] };
    this.#login = { username: `${prefix}@fuzz.invalid`, password: secret };
  }

  static async make(api: Api, accounts: Accounts, prefix: string): Promise<Canaries> {
    const secret = newSecret();
    const configuration = {
      access_point_type: "LiFi",
      geolocation: { latitude: 51.5, longitude: -0.1 },
      kept: ["é", 1],
    };
    const all: { account: Account; more: object }[] = [
      { account: { kind: "users", name: `${prefix}@fuzz.invalid` }, more: { roles: ["user"] } },
      { account: { kind: "agents", name: prefix }, more: { configuration } },
      { account: { kind: "third_party_apps", name: prefix }, more: { permissions: { commands: false } } },
    ];
    for (const { account, more } of all) await accounts.make(account.kind, account.name, secret, more);
    const token = await api.logIn(prefix, secret, "agent");
    await api.call("POST", "/api/v1/agent_update/update", token, { payload: MEASURED });
    const records: Kept[] = [];
    for (const { account } of all) records.push({ account, record: await accounts.read(account) });
    return new Canaries(api, accounts, prefix, secret, records);
  }

  /** What is no longer as it was. */
  async changes(): Promise<string[]> {
    const changes: string[] = [];
    for (const { account, record } of this.#records) {
      const now = await this.#accounts.read(account).catch(String);
      if (!isDeepStrictEqual(now, record))
        changes.push(`${account.kind} ${account.name} has changed: ${JSON.stringify(now)}`);
    }
    try {
      const token = await this.#api.logIn(this.#login.username, this.#login.password);
      const path = `/api/v1/metrics/agent_multi_metric_data?agent=${this.names.agents[0]}&metrics=${Object.keys(MEASURED)}&window=31d`;
      const { series } = await this.#api.call<{ series: Series[] }>("GET", path, token);
      const values = Object.fromEntries(series.map(({ metric, points }) => [metric, points.map(({ value }) => value)]));
      if (!isDeepStrictEqual(values, MEASURED_ONCE))
        changes.push(`the measured value has changed: ${JSON.stringify(values)}`);
    } catch (error) {
      changes.push(`the canary's data cannot be read: ${error}`);
    }
    return changes;
  }
}

interface Series {
  metric: string;
  points: { value: number }[];
}

const MEASURED = { canary: 42.5 };
const MEASURED_ONCE = { canary: [42.5] };
