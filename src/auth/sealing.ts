import { fromBase64, toBase64 } from "./base64.ts";
import type { WebCryptoKey } from "./crypto-key.ts";

/**
 * Secrets that must be had again, such as API keys, which the interface returns, and credentials on their way to the broker. They must
 * not lie in the database in the clear: AES-256-GCM under a key from a secret. What a text belongs to is sealed with it, so that it
 * cannot be passed off as another's.
 */
export interface Sealing {
  seal(text: string, belongsTo: string): Promise<string>;
  open(sealed: string, belongsTo: string): Promise<string>;
}

const IV_BYTES = 12;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createSealing(secretBase64: string): Sealing {
  let imported: WebCryptoKey | undefined;
  const key = async (): Promise<WebCryptoKey> => {
    imported ??= await crypto.subtle.importKey("raw", fromBase64(secretBase64), "AES-GCM", false, [
      "encrypt",
      "decrypt",
    ]);
    return imported;
  };

  return {
    async seal(text, belongsTo) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(belongsTo) };
      const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm, await key(), encoder.encode(text)));
      return `${toBase64(iv)}.${toBase64(sealed)}`;
    },

    async open(sealed, belongsTo) {
      const [iv = "", text = ""] = sealed.split(".");
      const algorithm = { name: "AES-GCM", iv: fromBase64(iv), additionalData: encoder.encode(belongsTo) };
      return decoder.decode(await crypto.subtle.decrypt(algorithm, await key(), fromBase64(text)));
    },
  };
}
