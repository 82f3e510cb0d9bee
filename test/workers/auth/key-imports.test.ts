import { describe, expect, it, vi } from "vitest";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createSecretHasher } from "../../../src/auth/secrets.ts";

const key = (): string => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));

/** As for a request that ends while its import is pending: the promise of it never settles. */
async function abandonFirst(use: () => Promise<unknown>): Promise<void> {
  const importKey = vi.spyOn(crypto.subtle, "importKey").mockImplementationOnce(() => new Promise(() => {}));
  try {
    void use();
    await Promise.resolve();
    expect(importKey).toHaveBeenCalledOnce();
  } finally {
    importKey.mockRestore();
  }
}

describe("keys that a request imports", () => {
  it("to seal with are imported again by the next request if the first one ends before it has them", async () => {
    const encryptor = createEncryptor([key()]);
    await abandonFirst(() => encryptor.seal("text", "owner"));
    const sealed = await encryptor.seal("text", "owner");
    expect(await encryptor.open(sealed, "owner")).toBe("text");
  });

  it("to hash generated secrets with are, too", async () => {
    const secrets = createSecretHasher([key()]);
    await abandonFirst(() => secrets.hash("secret"));
    expect(await secrets.verify(await secrets.hash("secret"), "secret")).toBe(true);
  });

  it("serve several first requests at once, and are imported once after that", async () => {
    const [encryptor, secrets] = [createEncryptor([key(), key()]), createSecretHasher([key(), key()])];
    const sealed = await Promise.all(Array.from({ length: 5 }, () => encryptor.seal("text", "owner")));
    expect(await Promise.all(sealed.map((text) => encryptor.open(text, "owner")))).toEqual(Array(5).fill("text"));
    const hashes = await Promise.all(Array.from({ length: 5 }, () => secrets.hash("secret")));
    expect(new Set(hashes).size).toBe(1);
    const importKey = vi.spyOn(crypto.subtle, "importKey");
    try {
      await encryptor.seal("text", "owner");
      await secrets.hash("secret");
      expect(importKey).not.toHaveBeenCalled();
    } finally {
      importKey.mockRestore();
    }
  });
});
