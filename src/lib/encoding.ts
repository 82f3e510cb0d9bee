/**
 * Standard base64 with padding, the form of stored hashes, encrypted texts and key settings. `base64url` of `jose` has no variant for it:
 * its `encode` omits the padding, and its `decode` rejects `+` and `/`.
 */

/** Bytes per call of `String.fromCharCode`: runtimes limit the number of arguments. */
const CHUNK_BYTES = 8_192;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += CHUNK_BYTES) {
    text += String.fromCharCode(...bytes.subarray(i, i + CHUNK_BYTES));
  }
  return btoa(text);
}

/** Throws if the text is not base64. */
export const fromBase64 = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** The type `CryptoKey`, under a name that exists for Node as well: Node's types have no global of that name. */
export type WebCryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;
