import { hash, verify } from "@node-rs/argon2";
import { ARGON2_PARAMETERS, type Passwords } from "../../auth/passwords.ts";

const { memoryKiB: memoryCost, passes: timeCost, lanes: parallelism } = ARGON2_PARAMETERS;

/** With a signal, what has not begun when it fires is left undone. */
export interface NativePasswords extends Passwords {
  hash(password: string, signal?: AbortSignal): Promise<string>;
  verify(expected: string, password: string, signal?: AbortSignal): Promise<boolean>;
}

/** argon2id by the native module: what Node hashes, the Worker verifies, and the other way round. */
export const nativePasswords: NativePasswords = {
  hash: (password, signal) => hash(password, { memoryCost, timeCost, parallelism }, signal),
  verify: (expected, password, signal) => verify(expected, password, undefined, signal),
};
