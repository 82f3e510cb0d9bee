/**
 * Hashes passwords with argon2id, in the PHC string format. On Cloudflare a wasm module does it in the Worker. On one machine a native
 * module does it in a separate process. Both use the same parameters, so each verifies the hashes of the other.
 */
export interface Passwords {
  hash(password: string): Promise<string>;
  verify(hash: string, password: string): Promise<boolean>;
}

/** The parameters that OWASP recommends for argon2id. */
export const ARGON2_PARAMETERS = { memoryKiB: 19_456, passes: 2, lanes: 1 } as const;

/** A hash that no password matches. A login to an unknown account verifies it, so that it takes as long as for a known one. */
export const DUMMY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
