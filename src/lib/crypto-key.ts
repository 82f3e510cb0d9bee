/** `CryptoKey`, a name that Node's types lack. */
export type WebCryptoKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;
