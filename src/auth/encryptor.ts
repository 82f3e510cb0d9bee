import { fromBase64, toBase64, type WebCryptoKey } from "../lib/encoding.ts";

/**
 * Encrypts secrets that must be readable later: API keys, which the API returns, and credentials in the outbox. Uses AES-256-GCM under
 * a key from the settings, so that the database never holds them in plain text. The context, such as the id of an account, is
 * authenticated together with the text: a sealed text that is copied to another context cannot be opened.
 */
export interface Encryptor {
  seal(text: string, context: string): Promise<string>;
  open(sealed: string, context: string): Promise<string>;
}

const IV_BYTES = 12;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Seals with the first key. Opens with any of them, so that texts from before a key rotation stay readable. */
export function createEncryptor(secretsBase64: readonly string[]): Encryptor {
  // Caches the keys, not promises of them: a promise belongs to the request that created it and may never settle after that request ends.
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
    async seal(text, context) {
      const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
      const algorithm = { name: "AES-GCM", iv, additionalData: encoder.encode(context) };
      const [key] = await keys();
      if (key === undefined) throw new Error("No encryption key");
      const sealed = new Uint8Array(await crypto.subtle.encrypt(algorithm, key, encoder.encode(text)));
      return `${toBase64(iv)}.${toBase64(sealed)}`;
    },

    async open(sealed, context) {
      const [iv = "", text = ""] = sealed.split(".");
      const algorithm = { name: "AES-GCM", iv: fromBase64(iv), additionalData: encoder.encode(context) };
      const bytes = fromBase64(text);
      // Decryption with a wrong key fails. Tries the keys in turn: there is rarely a second one.
      for (const [i, key] of (await keys()).entries()) {
        try {
          return decoder.decode(await crypto.subtle.decrypt(algorithm, key, bytes));
        } catch (error) {
          if (i === secretsBase64.length - 1) throw error;
        }
      }
      throw new Error("No encryption key");
    },
  };
}
