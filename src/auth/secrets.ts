import { fromBase64, toBase64 } from "../lib/base64.ts";
import type { WebCryptoKey } from "../lib/crypto-key.ts";

/** Secrets that the service makes itself, 256 random bits each. So many bits need no slow hash to be kept safely. */

const encoder = new TextEncoder();

export function randomSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function sha256(text: string): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** Whether two texts are the same, in a time that does not tell where they differ. */
export async function timingSafeEqual(a: string, b: string): Promise<boolean> {
  // Digests have one length, whatever is compared: a difference in length shows as little as any other.
  const [left, right] = await Promise.all([sha256(a), sha256(b)]);
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left.charCodeAt(i) ^ right.charCodeAt(i);
  return difference === 0;
}

/** Hashes of generated secrets, peppered: the database alone is no use to whoever gets hold of it. */
export interface SecretHasher {
  hash(secret: string): Promise<string>;
  verify(hash: string, secret: string): Promise<boolean>;
}

/** With one or more peppers: the first is for new hashes, the others for those from before a change. */
export function createSecretHasher(peppersBase64: readonly string[]): SecretHasher {
  // Keys are kept, not promises of keys: a promise belongs to the request that made it and may never settle if that request ends.
  let imported: WebCryptoKey[] | undefined;
  const hashes = async (secret: string): Promise<string[]> => {
    imported ??= await Promise.all(
      peppersBase64.map((pepper) =>
        crypto.subtle.importKey("raw", fromBase64(pepper), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]),
      ),
    );
    const signed = imported.map((pepper) => crypto.subtle.sign("HMAC", pepper, encoder.encode(secret)));
    return (await Promise.all(signed)).map((signature) => toBase64(new Uint8Array(signature)));
  };
  return {
    async hash(secret) {
      const [hash] = await hashes(secret);
      if (hash === undefined) throw new Error("There is no pepper to hash with");
      return hash;
    },
    async verify(expected, secret) {
      const matches = (await hashes(secret)).map((hash) => timingSafeEqual(expected, hash));
      return (await Promise.all(matches)).includes(true);
    },
  };
}
