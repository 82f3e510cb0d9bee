import { describe, expect, inject, it } from "vitest";
import { edgePasswords } from "../../../src/auth/argon2-wasm.ts";
import { DUMMY_HASH } from "../../../src/auth/passwords.ts";
import { createRemotePasswords } from "../../../src/auth/remote-passwords.ts";

const SAMPLES = inject("passwordSamples");

const MAKERS = {
  "at the edge": edgePasswords,
  "by a process of their own": createRemotePasswords(inject("passwordService")),
};

describe.each(Object.entries(MAKERS))("password hashes made %s", (_where, passwords) => {
  it.each(SAMPLES.map(({ password }) => password))("accept %j and nothing like it", async (password) => {
    const hash = await passwords.hash(password);
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    for (const maker of Object.values(MAKERS)) expect(await maker.verify(hash, password)).toBe(true);
    for (const other of [`${password}x`, password.slice(0, -1), `${password.slice(0, -1)}ü`]) {
      expect(await passwords.verify(hash, other)).toBe(false);
    }
  });

  it.each(SAMPLES)("accept what the native module made: $password", async ({ password, nativeHash }) => {
    expect(await passwords.verify(nativeHash, password)).toBe(true);
    expect(await passwords.verify(nativeHash, `${password.slice(0, -1)}é`)).toBe(false);
  });

  it("have a stand-in that nothing matches and that costs as much", async () => {
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

  it("are not taken for what they are not", async () => {
    await expect(passwords.verify("no hash", "x")).rejects.toThrow(/^(?!.*not available)/);
  });
});
