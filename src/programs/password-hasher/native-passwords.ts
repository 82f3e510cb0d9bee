import { hash, verify } from "@node-rs/argon2";
import { ARGON2_PARAMETERS, type Passwords } from "../../auth/passwords.ts";

const { memoryKiB: memoryCost, passes: timeCost, lanes: parallelism } = ARGON2_PARAMETERS;

/** If the signal fires before a call begins, the call rejects without any work. */
export interface NativePasswords extends Passwords {
  hash(password: string, signal?: AbortSignal): Promise<string>;
  verify(expected: string, password: string, signal?: AbortSignal): Promise<boolean>;
}

/** argon2id from a native module. The hashes are interchangeable with those of the Worker. */
export const nativePasswords: NativePasswords = {
  hash: (password, signal) => hash(password, { memoryCost, timeCost, parallelism }, signal),
  verify: (expected, password, signal) => verify(expected, password, undefined, signal),
};
