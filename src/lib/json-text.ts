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
