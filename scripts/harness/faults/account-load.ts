import { setTimeout as sleep } from "node:timers/promises";
import { makeUser } from "../accounts.ts";
import type { Target } from "../client.ts";
import { until } from "../product.ts";
import { createWorkload, type Workload } from "../workload.ts";

/**
 * Creates users, agents and apps, changes their secrets, and deletes every second one. In the end each of the others exists once and logs
 * in with the secret that was acknowledged last.
 */

/** The kinds of accounts: path, login type, field of the name, end of the name, field of the secret, other fields of a creation. */
const KINDS = [
  ["/api/v1/users/", "user", "username", "@example.com", "password", { roles: ["user"] }],
  ["/api/v1/agents/", "agent", "ap_id", "", "password", { configuration: {} }],
  ["/api/v1/third_party_apps/", "third_party_app", "app_name", "", "api_key", { permissions: {} }],
] as const;

/** The secret is the last one that was acknowledged. */
type Account = { name: string; secret: string; isDeleted: boolean };

const LISTED_WITHIN_MS = 60_000;

export async function startAccounts({ client, dataDir }: Target, { pauseMs }: { pauseMs: number }): Promise<Workload> {
  const prefix = `faults-${Date.now()}`;
  const { token } = await makeUser(dataDir, `${prefix}-admin@example.com`, "none", ["admin"]);
  const stop = new AbortController();
  const accountsOf = new Map(KINDS.map((kind) => [kind, [] as Account[]]));
  let acknowledged = 0;

  /**
   * Retries until the outcome is known, and returns whether the operation succeeded. A retry may find that the first attempt was carried
   * out although its response was lost; its status is `already` then.
   */
  const insist = async (method: string, path: string, body?: object, already?: number): Promise<boolean> => {
    for (let isFirst = true; ; isFirst = false) {
      const status = (await client.attempt(path, { method, token, body }))?.status;
      await sleep(pauseMs);
      // Without a response, the status is undefined, and so is `already` for a change.
      const isDone = status === 200 || (!isFirst && status !== undefined && status === already);
      if (isDone) acknowledged++;
      if (isDone || status === 404) return isDone;
    }
  };

  const lanes = [...accountsOf].map(async ([[path, , nameField, domain, secretField, fields], accounts]) => {
    for (let n = 1; !stop.signal.aborted; n++) {
      const name = `${prefix}-${n}${domain}`;
      const account = { name, secret: `the first of ${name}`, isDeleted: false };
      await insist("POST", path, { [nameField]: name, [secretField]: account.secret, ...fields }, 409);
      accounts.push(account);
      const secret = `the second of ${name}`;
      // If it is not found, an acknowledged account is lost. The comparison will count it.
      if (await insist("PUT", `${path}${name}`, { [secretField]: secret })) account.secret = secret;
      if (n % 2 === 0) account.isDeleted = await insist("DELETE", `${path}${name}`, undefined, 404);
    }
  });

  return createWorkload("accounts", stop, lanes, {
    acknowledged: () => acknowledged,
    async settle() {
      const startedMs = performance.now();
      const verdict = { lost: 0, duplicates: 0, violations: { "cannot log in": 0, "not deleted": 0 } };
      for (const [[path, loginType, nameField], accounts] of accountsOf) {
        let listed: Record<string, unknown>[] = [];
        await until(async () => {
          const response = await client.attempt(path, { token });
          if (response?.status === 200) listed = response.body as Record<string, unknown>[];
          return response?.status === 200;
        }, LISTED_WITHIN_MS);
        for (const { name, secret, isDeleted } of accounts) {
          const count = listed.filter((one) => one[nameField] === name).length;
          if (count > 1) verdict.duplicates++;
          if (isDeleted) verdict.violations["not deleted"] += count;
          else if (count === 0) verdict.lost++;
          else await client.logIn(name, secret, loginType).catch(() => verdict.violations["cannot log in"]++);
        }
      }
      return { ...verdict, settledMs: performance.now() - startedMs };
    },
  });
}
