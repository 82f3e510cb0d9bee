import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import type { LoginType, Target } from "../client.ts";
import { createWorkload, type Workload } from "../workload.ts";

/**
 * Creates users, agents and apps, changes their secrets, and deletes every second one. In the end each of the others exists once and logs
 * in with the secret that was acknowledged last.
 */

interface Kind {
  loginType: LoginType;
  path: string;
  nameField: string;
  domain: string;
  secretField: string;
  /** The other fields of a creation. */
  rest: object;
}

const user = { loginType: "user", path: "/api/v1/users/", nameField: "username", domain: "@example.com" } as const;
const agent = { loginType: "agent", path: "/api/v1/agents/", nameField: "ap_id", domain: "" } as const;
const app = {
  loginType: "third_party_app",
  path: "/api/v1/third_party_apps/",
  nameField: "app_name",
  domain: "",
} as const;
const KINDS: readonly Kind[] = [
  { ...user, secretField: "password", rest: { roles: ["user"] } },
  { ...agent, secretField: "password", rest: { configuration: {} } },
  { ...app, secretField: "api_key", rest: { permissions: {} } },
];

interface Account {
  kind: Kind;
  name: string;
  /** The last one that was acknowledged. */
  secret: string;
  isDeleted: boolean;
}

const LISTED_WITHIN_MS = 60_000;

export async function startAccounts({ client, dataDir }: Target, { pauseMs }: { pauseMs: number }): Promise<Workload> {
  const prefix = `faults-${Date.now()}`;
  const { token } = await makeUser(dataDir, `${prefix}-admin@example.com`, "none", ["admin"]);
  const stop = new AbortController();
  const accounts: Account[] = [];
  let acknowledged = 0;

  /**
   * Retries until the outcome is known, and returns whether the operation succeeded. A retry may find that the first attempt was carried
   * out although its response was lost; its status is `already` then.
   */
  const insist = async (method: string, path: string, body?: object, already?: number): Promise<boolean> => {
    for (let isFirst = true; ; isFirst = false, await sleep(pauseMs)) {
      const response = await client.attempt(path, { method, token, body });
      if (response === undefined) continue;
      if (response.status === 200 || (!isFirst && response.status === already)) {
        acknowledged++;
        return true;
      }
      if (response.status === 404) return false;
    }
  };

  const lanes = KINDS.map(async (kind) => {
    const { path, nameField, secretField, domain, rest } = kind;
    for (let n = 1; !stop.signal.aborted; n++) {
      const name = `${prefix}-${n}${domain}`;
      const account = { kind, name, secret: `the first of ${name}`, isDeleted: false };
      await insist("POST", path, { [nameField]: name, [secretField]: account.secret, ...rest }, 409);
      accounts.push(account);
      await sleep(pauseMs);
      const secret = `the second of ${name}`;
      // If it is not found, an acknowledged account is lost. The comparison will count it.
      if (await insist("PUT", `${path}${name}`, { [secretField]: secret })) account.secret = secret;
      await sleep(pauseMs);
      if (n % 2 === 0) account.isDeleted = await insist("DELETE", `${path}${name}`, undefined, 404);
      await sleep(pauseMs);
    }
  });

  const listNames = async ({ path, nameField }: Kind): Promise<string[]> => {
    for (const endMs = performance.now() + LISTED_WITHIN_MS; performance.now() < endMs; await sleep(pauseMs)) {
      const response = await client.attempt(path, { token });
      if (response?.status === 200)
        return (response.body as Record<string, unknown>[]).map((account) => String(account[nameField]));
    }
    throw new Error(`The accounts at ${path} could not be listed.`);
  };
  const canLogIn = ({ kind, name, secret }: Account): Promise<boolean> =>
    client.logIn(name, secret, kind.loginType).then(
      () => true,
      () => false,
    );

  return createWorkload("accounts", stop, lanes, {
    acknowledged: () => acknowledged,
    async settle() {
      const startedMs = performance.now();
      const verdict = { lost: 0, duplicates: 0, violations: { "cannot log in": 0, "not deleted": 0 } };
      for (const kind of KINDS) {
        const names = await listNames(kind);
        for (const account of accounts.filter((one) => one.kind === kind)) {
          const count = names.filter((name) => name === account.name).length;
          if (count > 1) verdict.duplicates++;
          if (account.isDeleted) verdict.violations["not deleted"] += count;
          else if (count === 0) verdict.lost++;
          else if (!(await canLogIn(account))) verdict.violations["cannot log in"]++;
        }
      }
      return { ...verdict, settledMs: performance.now() - startedMs };
    },
  });
}
