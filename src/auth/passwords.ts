/**
 * Passwords as argon2id hashes in PHC form. At the edge a wasm module makes them; on one machine a native one does, in a process
 * beside the Worker's. The parameters are the same.
 */

export interface Passwords {
  hash(password: string): Promise<string>;
  verify(hash: string, password: string): Promise<boolean>;
}

/** OWASP's recommendation for argon2id. */
export const ARGON2_PARAMETERS = { memoryKiB: 19_456, passes: 2, lanes: 1 } as const;

/** What an unknown account's password is checked against, so that it takes as long as a known one's. Nothing matches it. */
export const DUMMY_HASH =
  "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
