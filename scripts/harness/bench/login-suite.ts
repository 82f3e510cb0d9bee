import { availableParallelism } from "node:os";
import { DUMMY_HASH } from "../../../src/auth/passwords.ts";
import { nativePasswords } from "../../../src/programs/password-hasher/native-passwords.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadOptions, type LoadResult } from "../workload.ts";
import { type BenchContext, inTurns } from "./suite.ts";

/** Logins, next to what the cores can hash, and their effect on other requests. */

const PASSWORD = "a password of the bench";
const CORES = availableParallelism();
/** Enough that no core waits for the next login. */
const LOGINS_AT_ONCE = 4 * CORES;
const LOGINS_PER_SECOND = 4;
const OTHERS_PER_SECOND = 200;
const ROUNDS = 5;

export async function benchToken({ product, seconds, report }: BenchContext): Promise<void> {
  const { url, dataDir } = product;
  const hash = await nativePasswords.hash(PASSWORD);
  const users = await Promise.all(
    Array.from({ length: LOGINS_AT_ONCE }, (_, i) => makeUser(dataDir, `bench-token-${i}@example.com`, hash)),
  );
  const failures: LoadResult["failures"][] = [];
  const load = async (options: Omit<LoadOptions, "url" | "seconds">): Promise<LoadResult> => {
    const result = await generateLoad({ url, seconds, ...options });
    failures.push(result.failures);
    return result;
  };
  let count = 0;
  const logIn = async (pace: { pacePerSecond?: number } = {}): Promise<LoadResult> => {
    const path = "/api/v1/token/?login_type=user";
    const usernameOf = (connection: number) => users[connection]?.username ?? "";
    const result = await load({
      ...pace,
      connections: LOGINS_AT_ONCE,
      next: (connection) => {
        const body = new URLSearchParams({ username: usernameOf(connection), password: PASSWORD });
        return { method: "POST", path, body };
      },
    });
    count += result.count;
    return result;
  };
  const others = (): Promise<LoadResult> => {
    const next = () => ({ method: "GET", path: "/api/v1/users/me", token: users[0]?.token }) as const;
    return load({ connections: 16, pacePerSecond: OTHERS_PER_SECOND, next });
  };

  print(`Hashing and logging in on ${CORES} cores.`);
  const cpu = cpuOf(product, ["worker", "passwords", "sqld"]);
  const hashing = async () => ({ perSecond: await hashesPerSecond(seconds), p50Ms: 0, p99Ms: 0 });
  const rates = await inTurns({ hashing, logins: () => logIn() }, ({ perSecond }) => perSecond, ROUNDS);
  const { perSecond: native } = rates.hashing;
  const { perSecond, p50Ms, p99Ms } = rates.logins;
  report.add("native argon2id hashes, one at a time on each core", native, "/s");
  report.add(`logins, ${LOGINS_AT_ONCE} at a time`, perSecond, "/s", {
    ratio: { of: "native hashes", value: perSecond / native, wanted: "at least 0.8" },
    details: { "p50 ms": p50Ms, "p99 ms": p99Ms, ...cpu.per(count) },
  });

  print(`Other requests, with and without ${LOGINS_PER_SECOND} logins per second.`);
  await others();
  const withLogins = async () => (await Promise.all([others(), logIn({ pacePerSecond: LOGINS_PER_SECOND })]))[0];
  const { alone, beside } = await inTurns({ alone: others, beside: withLogins }, ({ p90Ms }) => p90Ms, ROUNDS);
  const what = `users/me at ${OTHERS_PER_SECOND}/s`;
  const quantiles = (result: LoadResult) => ({ "p50 ms": result.p50Ms, "p99 ms": result.p99Ms });
  report.add(what, alone.p90Ms, "ms (p90)", { details: quantiles(alone) });
  report.add(`${what}, beside ${LOGINS_PER_SECOND} logins/s`, beside.p90Ms, "ms (p90)", {
    ratio: { of: "without", value: beside.p90Ms / alone.p90Ms, wanted: "at most 1.5" },
    details: quantiles(beside),
  });
  const isKept = failures.every((statuses) => Object.keys(statuses).length === 0);
  report.require({ what: "every login and every request succeeded", isKept, details: { logins: count } });
}

/** Verifies passwords as the service does, one at a time on each core. */
async function hashesPerSecond(seconds: number): Promise<number> {
  const startedMs = performance.now();
  let count = 0;
  await Promise.all(
    Array.from({ length: CORES }, async () => {
      for (; performance.now() < startedMs + seconds * 1000; count++)
        await nativePasswords.verify(DUMMY_HASH, PASSWORD);
    }),
  );
  return (1000 * count) / (performance.now() - startedMs);
}
