import { availableParallelism } from "node:os";
import { DUMMY_HASH } from "../../../src/auth/passwords.ts";
import { nativePasswords } from "../../../src/programs/password-hasher/native-passwords.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import type { LoadResult } from "./load.ts";
import { type BenchContext, inTurns, load, ME, type SuiteLoad } from "./suite.ts";

/** Logins, next to what the cores can hash, and their effect on other requests. */

const PASSWORD = "a password of the bench";
const CORES = availableParallelism();
/** Enough that no core waits for the next login. */
const LOGINS_AT_ONCE = 4 * CORES;
const LOGINS_PER_SECOND = 4;
const OTHERS_PER_SECOND = 200;
const ROUNDS = 5;

export async function benchToken(context: BenchContext): Promise<void> {
  const { product, user, seconds, report } = context;
  const passwordHash = await nativePasswords.hash(PASSWORD);
  const makeOne = (_: unknown, i: number) => makeUser(product.dataDir, `bench-token-${i}@example.com`, passwordHash);
  const users = await Promise.all(Array.from({ length: LOGINS_AT_ONCE }, makeOne));
  let [logins, isFlawless] = [0, true];
  const logIn = async (options: SuiteLoad): Promise<LoadResult> => {
    const next = (connection: number) => {
      const body = new URLSearchParams({ username: users[connection]?.username ?? "", password: PASSWORD });
      return { path: "/api/v1/token/?login_type=user", body };
    };
    const result = await load(context, next, { connections: LOGINS_AT_ONCE, ...options });
    logins += result.count;
    isFlawless &&= result.isFlawless;
    return result;
  };
  const others = async (): Promise<LoadResult> => {
    const pace = { connections: 16, pacePerSecond: OTHERS_PER_SECOND };
    const result = await load(context, { path: ME, token: user.token }, pace);
    isFlawless &&= result.isFlawless;
    return result;
  };

  print(`Hashing and logging in on ${CORES} cores.`);
  const hash = async () => ({ perSecond: await hashesPerSecond(seconds), details: {} });
  const logInAll = () => logIn({ components: ["worker", "passwords", "sqld"] });
  const rates = await inTurns({ hash, logIn: logInAll }, ({ perSecond }) => perSecond, ROUNDS);
  const { perSecond, details } = rates.logIn;
  const ofHashes = { of: "native hashes", value: perSecond / rates.hash.perSecond, wanted: "at least 0.8" };
  report.add("native argon2id hashes, one at a time on each core", rates.hash.perSecond, "/s");
  report.add(`logins, ${LOGINS_AT_ONCE} at a time`, perSecond, "/s", details, ofHashes);

  print(`Other requests, with and without ${LOGINS_PER_SECOND} logins per second.`);
  await others();
  const withLogins = async () => (await Promise.all([others(), logIn({ pacePerSecond: LOGINS_PER_SECOND })]))[0];
  const { alone, beside } = await inTurns({ alone: others, beside: withLogins }, ({ p90Ms }) => p90Ms, ROUNDS);
  const what = `users/me at ${OTHERS_PER_SECOND}/s`;
  const ofAlone = { of: "without", value: beside.p90Ms / alone.p90Ms, wanted: "at most 1.5" };
  report.add(what, alone.p90Ms, "ms (p90)", alone.details);
  report.add(`${what}, beside ${LOGINS_PER_SECOND} logins/s`, beside.p90Ms, "ms (p90)", beside.details, ofAlone);
  report.require("every login and every request succeeded", isFlawless, { logins });
}

/** Verifies passwords as the service does, one at a time on each core. */
async function hashesPerSecond(seconds: number): Promise<number> {
  const startedMs = performance.now();
  let count = 0;
  const verify = async (): Promise<void> => {
    for (; performance.now() < startedMs + seconds * 1000; count++) await nativePasswords.verify(DUMMY_HASH, PASSWORD);
  };
  await Promise.all(Array.from({ length: CORES }, verify));
  return (1000 * count) / (performance.now() - startedMs);
}
