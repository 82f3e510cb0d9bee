import { env } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { createAgentStore } from "../../../src/accounts/agents/agent-store.ts";
import { clientNetwork } from "../../../src/accounts/login/client-network.ts";
import { createRateLimiter } from "../../../src/accounts/login/rate-limiter.ts";
import { edgePasswords } from "../../../src/auth/argon2-wasm.ts";
import { createSecretHasher, randomSecret } from "../../../src/auth/secrets.ts";
import { parseEnv } from "../../../src/env.ts";
import { TooMany } from "../../../src/lib/errors.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import {
  type LoginType,
  logIn as logInFrom,
  newApp,
  PASSWORD,
  settings,
  signedUp,
  uniqueEmail,
  uniqueName,
} from "../support.ts";

const WRONG = `${PASSWORD}x`;
const database = createDatabase({ url: settings.LIBSQL_URL ?? "" });

/** Returns an address in a network that no other test uses. */
const uniqueAddress = (host = 1): string => {
  const [a = 0, b = 0] = crypto.getRandomValues(new Uint16Array(2));
  return `2001:db8:${a.toString(16)}:${b.toString(16)}::${host}`;
};

const logIn = (type: LoginType, username: string, password: string, address?: string): Promise<Response> =>
  logInFrom(username, password, type, "", address);

const statusesOf = async (count: number, attempt: (i: number) => Promise<Response>): Promise<number[]> =>
  (await Promise.all(Array.from({ length: count }, (_, i) => attempt(i)))).map(({ status }) => status);

const detailOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { detail: unknown }).detail;

const of = (count: number, status: number): number[] => Array.from({ length: count }, () => status);

describe("failed logins", () => {
  it("lock an account for an address after ten failures, and not for its owner at another address", async () => {
    const { username } = await signedUp();
    const attacker = uniqueAddress();
    const statuses = await statusesOf(12, () => logIn("user", username, WRONG, attacker));
    expect(statuses.toSorted()).toEqual([...of(10, 401), ...of(2, 429)]);
    const locked = await logIn("user", username, PASSWORD, attacker);
    expect([locked.status, await detailOf(locked)]).toEqual([
      429,
      "Too many failed logins under this name from this address",
    ]);
    expect(Number(locked.headers.get("Retry-After"))).toSatisfy((seconds: number) => seconds > 0 && seconds <= 60);
    expect((await logIn("user", username, PASSWORD, uniqueAddress())).status).toBe(200);
  });

  it("count an IPv6 /64 network as one address", async () => {
    const { appName } = await newApp();
    const network = uniqueAddress();
    const statuses = await statusesOf(11, (i) =>
      logIn("third_party_app", appName, WRONG, network.replace(/1$/, String(i + 1))),
    );
    expect(statuses.toSorted()).toEqual([...of(10, 401), 429]);
  });

  it("lock a name after a hundred failures from distinct addresses, whether or not the account exists", async () => {
    const { appName } = await newApp();
    for (const name of [appName, uniqueName()]) {
      const statuses = await statusesOf(102, () => logIn("third_party_app", name, WRONG, uniqueAddress()));
      expect(statuses.toSorted()).toEqual([...of(100, 401), ...of(2, 429)]);
      const locked = await logIn("third_party_app", name, PASSWORD, uniqueAddress());
      expect([locked.status, await detailOf(locked)]).toEqual([429, "Too many failed logins under this name"]);
    }
  });

  it("lock an address after a hundred failures over many names, before any password is hashed", async () => {
    const { username } = await signedUp();
    const address = uniqueAddress();
    const statuses = await statusesOf(102, () => logIn("third_party_app", uniqueName(), WRONG, address));
    expect(statuses.toSorted()).toEqual([...of(100, 401), ...of(2, 429)]);
    const verify = vi.spyOn(edgePasswords, "verify");
    try {
      for (const name of [username, uniqueEmail()]) {
        const locked = await logIn("user", name, PASSWORD, address);
        expect([locked.status, await detailOf(locked)]).toEqual([429, "Too many failed logins from this address"]);
      }
      expect(verify).not.toHaveBeenCalled();
      expect((await logIn("user", username, PASSWORD, uniqueAddress())).status).toBe(200);
      expect(verify).toHaveBeenCalledOnce();
    } finally {
      verify.mockRestore();
    }
  });

  it("count by name alone while the client address is unknown", async () => {
    const { appName } = await newApp();
    const statuses = await statusesOf(101, () => logIn("third_party_app", appName, WRONG));
    expect(statuses.toSorted()).toEqual([...of(100, 401), 429]);
    const { appName: other } = await newApp();
    expect((await logIn("third_party_app", other, PASSWORD)).status).toBe(200);
  });

  it("never lock out an agent with a generated credential, and limit wrong credentials", async () => {
    const secrets = createSecretHasher(parseEnv(env).CREDENTIAL_PEPPER);
    const password = randomSecret();
    const apId = uniqueName();
    await createAgentStore(database).insert(
      { apId, credentialKind: "hmac", credential: await secrets.hash(password), configuration: {} },
      { kind: "console", name: "test", requestId: "" },
    );
    const address = uniqueAddress();
    const statuses = await statusesOf(12, () => logIn("agent", apId, WRONG, address));
    expect(statuses.toSorted()).toEqual([...of(10, 401), ...of(2, 429)]);
    expect((await logIn("agent", apId, password, address)).status).toBe(200);
    // The name is locked as well.
    await statusesOf(90, () => fail([`login:agent:${apId}`, 100]));
    expect((await logIn("agent", apId, WRONG, uniqueAddress())).status).toBe(429);
    expect((await logIn("agent", apId, password, uniqueAddress())).status).toBe(200);
  });
});

const rateLimiter = createRateLimiter(database);
const fail = async (...limits: [key: string, max: number][]): Promise<Response> => {
  await rateLimiter.limitFailures(
    limits.map(([key, max]) => ({ key, max, message: key })),
    async () => undefined,
  );
  return new Response();
};

describe("limits on failures", () => {
  it("name the limit that was reached, and do not count a rejected attempt", async () => {
    const [narrow, wide] = [uniqueName(), uniqueName()];
    for (let i = 0; i < 2; i++) await fail([narrow, 2], [wide, 4]);
    await expect(fail([narrow, 2], [wide, 4])).rejects.toThrow(narrow);
    for (let i = 0; i < 2; i++) await fail([uniqueName(), 2], [wide, 4]);
    await expect(fail([uniqueName(), 2], [wide, 4])).rejects.toThrow(wide);
  });

  it("hold for concurrent attempts under several keys", async () => {
    const wide = uniqueName();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 60 }, (_, i) => fail([`${wide}:${i % 7}`, 5], [wide, 20])),
    );
    const refusals = outcomes.filter(({ status }) => status === "rejected");
    expect(refusals).toHaveLength(40);
    for (const outcome of refusals) expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(TooMany);
  });

  it("accept all successful attempts, even if few failures are left", async () => {
    const key = uniqueName();
    for (let i = 0; i < 4; i++) await fail([key, 5]);
    const succeed = () => rateLimiter.limitFailures([{ key, max: 5, message: "" }], async () => true);
    expect(await Promise.all(Array.from({ length: 20 }, succeed))).toEqual(Array.from({ length: 20 }, () => true));
  });
});

describe("the network of a client address", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:DB8:1:2::6", "2001:db8:1:2"],
    ["2001:0db8:0001:0002::6", "2001:db8:1:2"],
    ["2001:db8::6", "2001:db8:0:0"],
    ["[2001:db8::6]", "2001:db8:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
    ["::1", "0:0:0:0"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["unknown", undefined],
  ])("of %s is %s", (address, network) => {
    expect(clientNetwork(address)).toBe(network);
  });
});
