import { fromBase64, toBase64 } from "./base64.ts";
import type { WebCryptoKey } from "./crypto-key.ts";

/**
 * API keys of third-party apps. The interface returns them, so they must be recoverable, and they must not lie in the database
 * in the clear: AES-256-GCM under a key from a secret, with the app's id as associated data, so that one app's key cannot be
 * passed off as another's.
 */
export interface ApiKeys {
  seal(apiKey: string, appId: string): Promise<string>;
  open(sealed: string, appId: string): Promise<string>;
}

const IV_BYTES = 12;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function createApiKeys(secretBase64: string): ApiKeys {
  let imported: WebCryptoKey | undefined;
  const key = async (): Promise<WebCryptoKey> => {
    imported ??= await crypto.subtle.importKey("raw", fromBase64(secretBase64), "AES-GCM", false, [
      "encrypt",
      "decrypt",
    ]);
    return imported;
  };

  return {
    async seal(apiKey, appId) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(appId) };
      const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm, await key(), encoder.encode(apiKey)));
      return `${toBase64(iv)}.${toBase64(sealed)}`;
    },

    async open(sealed, appId) {
      const [iv = "", text = ""] = sealed.split(".");
      const algorithm = { name: "AES-GCM", iv: fromBase64(iv), additionalData: encoder.encode(appId) };
      return decoder.decode(await crypto.subtle.decrypt(algorithm, await key(), fromBase64(text)));
    },
  };
}
