import { fromBase64, toBase64 } from "./base64.ts";
import type { WebCryptoKey } from "./crypto-key.ts";

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
export async function isSame(a: string, b: string): Promise<boolean> {
  // Digests have one length, whatever is compared: a difference in length shows as little as any other.
  const [left, right] = await Promise.all([sha256(a), sha256(b)]);
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left.charCodeAt(i) ^ right.charCodeAt(i);
  return difference === 0;
}

/** Hashes of generated secrets, peppered: the database alone is no use to whoever gets hold of it. */
export interface GeneratedSecrets {
  hash(secret: string): Promise<string>;
  verify(hash: string, secret: string): Promise<boolean>;
}

export function createGeneratedSecrets(pepperBase64: string): GeneratedSecrets {
  let imported: WebCryptoKey | undefined;
  const hash = async (secret: string): Promise<string> => {
    imported ??= await crypto.subtle.importKey(
      "raw",
      fromBase64(pepperBase64),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    return toBase64(new Uint8Array(await crypto.subtle.sign("HMAC", imported, encoder.encode(secret))));
  };
  return { hash, verify: async (expected, secret) => await isSame(expected, await hash(secret)) };
}
