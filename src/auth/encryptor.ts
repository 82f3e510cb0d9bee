import { fromBase64, toBase64 } from "../lib/base64.ts";
import type { WebCryptoKey } from "../lib/crypto-key.ts";

/**
 * Secrets that must be had again, such as API keys, which the interface returns, and credentials on their way to the broker. They must
 * not lie in the database in the clear: AES-256-GCM under a key from a secret. What a text belongs to is sealed with it, so that it
 * cannot be passed off as another's.
 */
export interface Encryptor {
  seal(text: string, belongsTo: string): Promise<string>;
  open(sealed: string, belongsTo: string): Promise<string>;
}

const IV_BYTES = 12;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** With one or more keys, the first of which seals. The others open what was sealed before a change of keys. */
export function createEncryptor(secretsBase64: readonly string[]): Encryptor {
  // Keys are kept, not promises of keys: a promise belongs to the request that made it and may never settle if that request ends.
  let imported: WebCryptoKey[] | undefined;
  const keys = async (): Promise<WebCryptoKey[]> => {
    imported ??= await Promise.all(
      secretsBase64.map((secret) =>
        crypto.subtle.importKey("raw", fromBase64(secret), "AES-GCM", false, ["encrypt", "decrypt"]),
      ),
    );
    return imported;
  };

  return {
    async seal(text, belongsTo) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(belongsTo) };
      const [key] = await keys();
      if (key === undefined) throw new Error("There is no key to seal with");
      const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm, key, encoder.encode(text)));
      return `${toBase64(iv)}.${toBase64(sealed)}`;
    },

    async open(sealed, belongsTo) {
      const [iv = "", text = ""] = sealed.split(".");
      const algorithm = { name: "AES-GCM", iv: fromBase64(iv), additionalData: encoder.encode(belongsTo) };
      const bytes = fromBase64(text);
      // A wrong key is told from the right one by the seal itself. Tried in turn: hardly ever is there a second one.
      for (const [i, key] of (await keys()).entries()) {
        try {
          return decoder.decode(await crypto.subtle.decrypt(algorithm, key, bytes));
        } catch (error) {
          if (i === secretsBase64.length - 1) throw error;
        }
      }
      throw new Error("There is no key to open it with");
    },
  };
}
