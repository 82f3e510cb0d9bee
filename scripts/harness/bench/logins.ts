import { availableParallelism } from "node:os";
import { DUMMY_HASH } from "../../../src/auth/passwords.ts";
import { nativePasswords } from "../../../src/programs/password-hasher/native-passwords.ts";
import { print } from "../../../src/programs/shared/cli.ts";
import { makeUser } from "../accounts.ts";
import { median } from "../stats.ts";
import { cpuOf } from "../usage.ts";
import { generateLoad, type LoadOptions, type LoadResult } from "../workload.ts";
import type { BenchContext } from "./context.ts";

/** Logging in: next to what the cores can hash, and what others notice of it. */

const PASSWORD = "a password of the bench";
const CORES = availableParallelism();
/** Enough of them under way that no core waits for the next one. */
const LOGGING_IN = 4 * CORES;
const LOGINS_PER_SECOND = 4;
const OTHERS_PER_SECOND = 200;
const ROUNDS = 5;

export async function benchToken({ product, seconds, report }: BenchContext): Promise<void> {
  const { url, dataDir } = product;
  const hash = await nativePasswords.hash(PASSWORD);
  const users = await Promise.all(
    Array.from({ length: LOGGING_IN }, (_, i) => makeUser(dataDir, `bench-token-${i}@example.com`, hash)),
  );
  const logins: LoadOptions = {
    url,
    seconds,
    connections: LOGGING_IN,
    next: (connection) => ({
      method: "POST",
      path: "/api/v1/token/?login_type=user",
      body: new URLSearchParams({ username: users[connection]?.username ?? "", password: PASSWORD }),
    }),
  };

  // Each in turns with what it is compared with, so that whatever else the machine does meets both.
  print(`Hashing and logging in on ${CORES} cores.`);
  const hashed: number[] = [];
  const loggedIn: LoadResult[] = [];
  const cpu = cpuOf(product, ["worker", "passwords", "sqld"]);
  for (let round = 0; round < ROUNDS; round++) {
    hashed.push(await hashesPerSecond(seconds));
    loggedIn.push(await generateLoad(logins));
  }
  const native = median(hashed, (perSecond) => perSecond);
  const { perSecond, p50Ms, p99Ms } = median(loggedIn, (result) => result.perSecond);
  const count = loggedIn.reduce((sum, result) => sum + result.count, 0);
  report.add({ what: "native argon2id hashes, one at a time on each core", value: native, unit: "/s" });
  report.add({
    id: "login",
    what: `logins, ${LOGGING_IN} at a time`,
    value: perSecond,
    unit: "/s",
    ratio: { of: "native hashes", value: perSecond / native, wanted: "at least 0.8" },
    details: { "p50 ms": p50Ms, "p99 ms": p99Ms, ...cpu.per(count) },
  });

  print(`Others, with and without ${LOGINS_PER_SECOND} logins a second.`);
  const others = () =>
    generateLoad({
      url,
      seconds,
      connections: 16,
      pacePerSecond: OTHERS_PER_SECOND,
      next: () => ({ method: "GET", path: "/api/v1/users/me", token: users[0]?.token ?? "" }),
    });
  await others();
  const alone: LoadResult[] = [];
  const beside: LoadResult[] = [];
  const slow: LoadResult[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    alone.push(await others());
    const both = await Promise.all([others(), generateLoad({ ...logins, pacePerSecond: LOGINS_PER_SECOND })]);
    beside.push(both[0]);
    slow.push(both[1]);
  }
  const without = median(alone, ({ p90Ms }) => p90Ms);
  const withLogins = median(beside, ({ p90Ms }) => p90Ms);
  report.add({
    what: `users/me at ${OTHERS_PER_SECOND}/s`,
    value: without.p90Ms,
    unit: "ms (p90)",
    details: { "p50 ms": without.p50Ms, "p99 ms": without.p99Ms },
  });
  report.add({
    what: `users/me at ${OTHERS_PER_SECOND}/s, beside ${LOGINS_PER_SECOND} logins/s`,
    value: withLogins.p90Ms,
    unit: "ms (p90)",
    ratio: { of: "without", value: withLogins.p90Ms / without.p90Ms, wanted: "at most 1.5" },
    details: { "p50 ms": withLogins.p50Ms, "p99 ms": withLogins.p99Ms },
  });
  report.require({
    what: "everybody was let in",
    isKept: [loggedIn, alone, beside, slow].flat().every(({ failures }) => Object.keys(failures).length === 0),
    details: { logins: count + slow.reduce((sum, result) => sum + result.count, 0) },
  });
}

/** As the service checks a password, one after the other on each core. */
async function hashesPerSecond(seconds: number): Promise<number> {
  const startedMs = performance.now();
  let count = 0;
  await Promise.all(
    Array.from({ length: CORES }, async () => {
      for (; performance.now() < startedMs + seconds * 1000; count++) {
        await nativePasswords.verify(DUMMY_HASH, PASSWORD);
      }
    }),
  );
  return (1000 * count) / (performance.now() - startedMs);
}
