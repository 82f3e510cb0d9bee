/** Base64 and JSON texts. */

/** Bytes per call of `String.fromCharCode`: runtimes limit the number of arguments. */
const CHUNK_BYTES = 8_192;

/**
 * Returns standard base64 with padding, the form of stored hashes, encrypted texts and key settings. `base64url` of `jose` has no variant
 * for it: its `encode` omits the padding, and its `decode` rejects `+` and `/`.
 */
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

declare const brand: unique symbol;

/**
 * Valid JSON text, which can be spliced into other JSON text without escaping. The service stores and sends such text unchanged:
 * parsing and encoding it again would round large numbers, turn `1e400` into null and reorder keys.
 */
export type JsonText = string & { readonly [brand]: true };

/** Throws if the value has no JSON form, such as undefined. */
export function encodeJson(value: unknown): JsonText {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError("The value has no JSON form");
  return asJsonText(text);
}

/** Marks a text as JSON. The caller has parsed it successfully, or has stored or composed it from JSON texts. */
export const asJsonText = (text: string): JsonText => text as JsonText;

export const joinJsonArray = (items: readonly JsonText[]): JsonText => asJsonText(`[${items.join()}]`);
