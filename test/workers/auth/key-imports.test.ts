import { describe, expect, it, vi } from "vitest";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createSecretHasher } from "../../../src/auth/secrets.ts";

const key = (): string => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));

/** Acts like a request that ends while it imports a key: the promise of the import never settles. */
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

describe("keys that the first request imports", () => {
  it("for encryption are imported again if that request ends before the import does", async () => {
    const encryptor = createEncryptor([key()]);
    await abandonFirst(() => encryptor.seal("text", "owner"));
    const sealed = await encryptor.seal("text", "owner");
    expect(await encryptor.open(sealed, "owner")).toBe("text");
  });

  it("for hashes of generated secrets are imported again as well", async () => {
    const secrets = createSecretHasher([key()]);
    await abandonFirst(() => secrets.hash("secret"));
    expect(await secrets.verify(await secrets.hash("secret"), "secret")).toBe(true);
  });

  it("work for several concurrent first requests, and are not imported again later", async () => {
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
