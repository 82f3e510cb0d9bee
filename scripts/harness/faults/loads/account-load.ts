import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../../accounts.ts";
import type { Target } from "../../target.ts";
import type { Load } from "./load.ts";

/**
 * Users, agents and apps are made, given another secret, and every second one is deleted again: in the end those are there, each once,
 * that should be, and can log in with the secret that was acknowledged last.
 */

export interface AccountsOptions {
  pauseMs: number;
}

interface Kind {
  loginType: string;
  path: string;
  nameField: string;
  nameOf(prefix: string, n: number): string;
  secretField: string;
  /** What else a creation takes. */
  rest: object;
}

const KINDS: readonly Kind[] = [
  {
    loginType: "user",
    path: "/api/v1/users/",
    nameField: "username",
    nameOf: (prefix, n) => `${prefix}-${n}@example.com`,
    secretField: "password",
    rest: { roles: ["user"] },
  },
  {
    loginType: "agent",
    path: "/api/v1/agents/",
    nameField: "ap_id",
    nameOf: (prefix, n) => `${prefix}-${n}`,
    secretField: "password",
    rest: { configuration: {} },
  },
  {
    loginType: "third_party_app",
    path: "/api/v1/third_party_apps/",
    nameField: "app_name",
    nameOf: (prefix, n) => `${prefix}-${n}`,
    secretField: "api_key",
    rest: { permissions: {} },
  },
];

interface Account {
  kind: Kind;
  name: string;
  /** The last one that was acknowledged. */
  secret: string;
  isDeleted: boolean;
}

const LISTED_WITHIN_MS = 60_000;

export async function startAccounts(target: Target, { pauseMs }: AccountsOptions): Promise<Load> {
  const prefix = `faults-${Date.now()}`;
  const { token } = await makeUser(target.dataDir, `${prefix}-admin@example.com`, "none", ["admin"]);
  const stop = new AbortController();
  const accounts: Account[] = [];
  let acknowledged = 0;

  /**
   * Asks again and again until it is known what became of it; whether it was done. After a try without an answer, or with one that
   * says that the outcome is not known, the next may find it done already.
   */
  const insist = async (
    method: "POST" | "PUT" | "DELETE",
    path: string,
    body: object | undefined,
    already?: number,
  ): Promise<boolean> => {
    for (let isFirst = true; ; isFirst = false, await sleep(pauseMs)) {
      const answer = await target.ask(path, { method, token, ...(body !== undefined && { body }) });
      if (answer === undefined) continue;
      if (answer.status === 200 || (!isFirst && answer.status === already)) {
        acknowledged++;
        return true;
      }
      if (answer.status === 404) return false;
    }
  };

  const lanes = KINDS.map(async (kind) => {
    const { path, nameField, secretField, rest } = kind;
    for (let n = 1; !stop.signal.aborted; n++) {
      const name = kind.nameOf(prefix, n);
      const account = { kind, name, secret: `the first of ${name}`, isDeleted: false };
      await insist("POST", path, { [nameField]: name, [secretField]: account.secret, ...rest }, 409);
      accounts.push(account);
      await sleep(pauseMs);
      const secret = `the second of ${name}`;
      // Where it is not found, what was acknowledged is gone; the comparison will say so.
      if (await insist("PUT", `${path}${name}`, { [secretField]: secret })) account.secret = secret;
      await sleep(pauseMs);
      if (n % 2 === 0) account.isDeleted = await insist("DELETE", `${path}${name}`, undefined, 404);
      await sleep(pauseMs);
    }
  });

  const namesOf = async ({ path, nameField }: Kind): Promise<string[]> => {
    for (const endMs = performance.now() + LISTED_WITHIN_MS; performance.now() < endMs; await sleep(pauseMs)) {
      const answer = await target.ask(path, { token });
      if (answer?.status === 200)
        return (answer.body as Record<string, unknown>[]).map((account) => String(account[nameField]));
    }
    throw new Error(`The accounts at ${path} could not be listed.`);
  };
  const logsIn = async ({ kind, name, secret }: Account): Promise<boolean> => {
    const body = new URLSearchParams({ username: name, password: secret });
    return (await target.ask(`/api/v1/token/?login_type=${kind.loginType}`, { body }))?.status === 200;
  };

  return {
    name: "accounts",
    get acknowledged() {
      return acknowledged;
    },
    async stop() {
      stop.abort();
      await Promise.all(lanes);
    },
    async settle() {
      const startedMs = performance.now();
      const verdict = { lost: 0, doubled: 0, faults: { "cannot log in": 0, "not deleted": 0 } };
      for (const kind of KINDS) {
        const names = await namesOf(kind);
        for (const account of accounts.filter((one) => one.kind === kind)) {
          const count = names.filter((name) => name === account.name).length;
          if (count > 1) verdict.doubled++;
          if (account.isDeleted) verdict.faults["not deleted"] += count;
          else if (count === 0) verdict.lost++;
          else if (!(await logsIn(account))) verdict.faults["cannot log in"]++;
        }
      }
      return { ...verdict, settledMs: performance.now() - startedMs };
    },
  };
}
