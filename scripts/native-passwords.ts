import { hash, verify } from "@node-rs/argon2";
import { ARGON2_PARAMETERS, type Passwords } from "../src/auth/passwords.ts";

const { memoryKiB: memoryCost, passes: timeCost, lanes: parallelism } = ARGON2_PARAMETERS;

/** argon2id by the native module: what Node hashes, the Worker verifies, and the other way round. */
export const nativePasswords: Passwords = {
  hash: (password) => hash(password, { memoryCost, timeCost, parallelism }),
  verify: (expected, password) => verify(expected, password),
};
