import { describe, expect, inject, it } from "vitest";
import { edgePasswords } from "../../../src/auth/argon2-wasm.ts";
import { createRemotePasswords, DUMMY_HASH } from "../../../src/auth/passwords.ts";

const SAMPLES = inject("passwordSamples");

const HASHERS = {
  "in the Worker": edgePasswords,
  "by the password service": createRemotePasswords(inject("passwordService")),
};

describe.each(Object.entries(HASHERS))("password hashes made %s", (_, passwords) => {
  it.each(SAMPLES.map(({ password }) => password))("accept %j and no similar password", async (password) => {
    const hash = await passwords.hash(password);
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    for (const hasher of Object.values(HASHERS)) expect(await hasher.verify(hash, password)).toBe(true);
    for (const other of [`${password}x`, password.slice(0, -1), `${password.slice(0, -1)}ü`]) {
      expect(await passwords.verify(hash, other)).toBe(false);
    }
  });

  it.each(SAMPLES)("include those of the native module: $password", async ({ password, nativeHash }) => {
    expect(await passwords.verify(nativeHash, password)).toBe(true);
    expect(await passwords.verify(nativeHash, `${password.slice(0, -1)}é`)).toBe(false);
  });

  it("include a dummy that no password matches and that takes as long to verify", async () => {
    expect(await passwords.verify(DUMMY_HASH, "")).toBe(false);
    const hash = await passwords.hash("x");
    expect(DUMMY_HASH.split("$").slice(0, 4)).toEqual(hash.split("$").slice(0, 4));
    const tookMs = async (against: string): Promise<number> => {
      const startedMs = Date.now();
      for (let i = 0; i < 10; i++) await passwords.verify(against, "x");
      return Date.now() - startedMs;
    };
    const [known, unknown] = [await tookMs(hash), await tookMs(DUMMY_HASH)];
    expect(Math.max(known, unknown) / Math.min(known, unknown)).toBeLessThan(3);
  });

  it("are rejected if they are malformed, and not as an outage", async () => {
    await expect(passwords.verify("no hash", "x")).rejects.toThrow(/^(?!.*not available)/);
  });
});
