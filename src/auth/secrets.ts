import { base64url } from "jose";
import { fromBase64, toBase64, type WebCryptoKey } from "../lib/encoding.ts";

/** Secrets that the service generates: 256 random bits each. They cannot be guessed, so a fast hash is safe for storage. */

const encoder = new TextEncoder();

/** Returns 256 random bits in base64url. */
export const randomSecret = (): string => base64url.encode(crypto.getRandomValues(new Uint8Array(32)));

/** Begins the key of a webhook's signatures (Standard Webhooks). The rest is base64. */
export const SIGNING_KEY_PREFIX = "whsec_";
export const randomSigningKey = (): string =>
  `${SIGNING_KEY_PREFIX}${toBase64(crypto.getRandomValues(new Uint8Array(32)))}`;

/** Returns the SHA-256 of a text in base64. */
export async function sha256(text: string): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

/** Returns the SHA-256 of a text in hexadecimal digits. */
export async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns whether two texts are equal, in a time that does not depend on where they differ. */
export async function timingSafeEqual(a: string, b: string): Promise<boolean> {
  // Compares digests, which have a fixed length: the time does not reveal the length of the texts either.
  const [left, right] = await Promise.all([sha256(a), sha256(b)]);
  let difference = 0;
  for (let i = 0; i < left.length; i++) difference |= left.charCodeAt(i) ^ right.charCodeAt(i);
  return difference === 0;
}

/** Hashes generated secrets with a pepper, so that a copy of the database alone is not enough to check a guess. */
export interface SecretHasher {
  hash(secret: string): Promise<string>;
  verify(hash: string, secret: string): Promise<boolean>;
}

/** Hashes with the first pepper. Verifies with any of them, so that hashes from before a rotation stay valid. */
export function createSecretHasher(peppersBase64: readonly string[]): SecretHasher {
  // Caches the keys, not promises of them: a promise belongs to the request that created it and may never settle after that request ends.
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
      if (hash === undefined) throw new Error("No pepper");
      return hash;
    },
    async verify(expected, secret) {
      const matches = (await hashes(secret)).map((hash) => timingSafeEqual(expected, hash));
      return (await Promise.all(matches)).includes(true);
    },
  };
}
