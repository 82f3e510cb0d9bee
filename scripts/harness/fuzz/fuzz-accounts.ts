import { randomBytes } from "node:crypto";
import type { Api } from "../api.ts";
import { SECRET_MARK } from "./vocabulary.ts";

/** Accounts of the fuzzer's own, and their end. */

export interface Account {
  kind: "users" | "agents" | "third_party_apps";
  name: string;
}

/** The field that names an account of each kind. */
const NAME_FIELDS: Record<Account["kind"], string> = {
  users: "username",
  agents: "ap_id",
  third_party_apps: "app_name",
};

export const newSecret = (): string => `${SECRET_MARK}-${randomBytes(12).toString("base64url")}`;

const pathOf = ({ kind, name }: Account): string => `/api/v1/${kind}/${encodeURIComponent(name)}`;

export class Accounts {
  readonly #api: Api;
  readonly #adminToken: string;
  /** By path: each once, however often it was made. */
  readonly #made = new Set<string>();

  constructor(api: Api, adminToken: string) {
    this.#api = api;
    this.#adminToken = adminToken;
  }

  async make(kind: Account["kind"], name: string, secret: string, more: object): Promise<void> {
    const body = { [NAME_FIELDS[kind]]: name, [kind === "third_party_apps" ? "api_key" : "password"]: secret, ...more };
    this.#made.add(pathOf({ kind, name }));
    await this.#api.call("POST", `/api/v1/${kind}/`, this.#adminToken, body);
  }

  async read(account: Account): Promise<unknown> {
    return await this.#api.call("GET", pathOf(account), this.#adminToken);
  }

  /** Notes what a request that was answered with a success may have made. */
  note(requestBody: Buffer, answer: string): void {
    const [asked, answered] = [parsed(requestBody.toString()), parsed(answer)];
    for (const [kind, field] of Object.entries(NAME_FIELDS) as [Account["kind"], string][]) {
      const name = asked[field];
      if (typeof name === "string")
        this.#made.add(pathOf({ kind, name: kind === "users" ? name.trim().toLowerCase() : name }));
    }
    if (Array.isArray(answered.ap_ids)) this.#made.add(`/api/v1/emulator/${String(answered.job_number)}`);
  }

  /** Removes all that was made since; some of it may be gone already. */
  async removeAll(): Promise<void> {
    for (const path of this.#made) {
      await this.#api.call("DELETE", path, this.#adminToken).catch(() => {});
    }
    this.#made.clear();
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
