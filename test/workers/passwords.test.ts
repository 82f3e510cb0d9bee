import { describe, expect, inject, it } from "vitest";
import { edgePasswords } from "../../src/auth/argon2-wasm.ts";
import { DUMMY_HASH } from "../../src/auth/passwords.ts";

const SAMPLES = inject("passwordSamples");

describe("password hashes", () => {
  it.each(SAMPLES.map(({ password }) => password))("accept %j and nothing like it", async (password) => {
    const hash = await edgePasswords.hash(password);
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await edgePasswords.verify(hash, password)).toBe(true);
    for (const other of [`${password}x`, password.slice(0, -1), `${password.slice(0, -1)}ü`]) {
      expect(await edgePasswords.verify(hash, other)).toBe(false);
    }
  });

  it.each(SAMPLES)("made by the native module are accepted: $password", async ({ password, nativeHash }) => {
    expect(await edgePasswords.verify(nativeHash, password)).toBe(true);
    expect(await edgePasswords.verify(nativeHash, `${password.slice(0, -1)}é`)).toBe(false);
  });

  it("have a stand-in that nothing matches and that costs as much", async () => {
    expect(await edgePasswords.verify(DUMMY_HASH, "")).toBe(false);
    expect(DUMMY_HASH.split("$").slice(0, 4)).toEqual((await edgePasswords.hash("x")).split("$").slice(0, 4));
  });
});
