import { describe, expect, it } from "vitest";
import { DUMMY_HASH, hashPassword, verifyPassword } from "../../src/auth/passwords.ts";

describe("password hashes", () => {
  it.each([
    "correct horse",
    "Zürich-Straße",
    "пароль-пароль",
    "密码密码密码密码",
    "🔑🔒🔑🔒",
    "nul\0nul\0nul",
    "x".repeat(128),
  ])("accept %s and nothing like it", (password) => {
    const hash = hashPassword(password);
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(verifyPassword(hash, password)).toBe(true);
    expect(verifyPassword(hash, `${password}x`)).toBe(false);
    expect(verifyPassword(hash, password.slice(0, -1))).toBe(false);
    expect(verifyPassword(hash, `${password.slice(0, -1)}ü`)).toBe(false);
  });

  it("have a stand-in that nothing matches and that costs as much", () => {
    expect(verifyPassword(DUMMY_HASH, "")).toBe(false);
    expect(DUMMY_HASH.split("$").slice(0, 4)).toEqual(hashPassword("x").split("$").slice(0, 4));
  });
});
