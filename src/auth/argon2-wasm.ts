import argon2 from "@phi-ag/argon2/argon2.wasm";
import { ARGON2_PARAMETERS, type Passwords } from "./passwords.ts";

/**
 * argon2id at the edge. Of @phi-ag/argon2 only the wasm file is used: its JavaScript class takes a password's UTF-16 length
 * for its byte length and so accepts wrong non-ASCII passwords.
 */

const ARGON2ID = 2;
const VERSION_13 = 0x13;
const HASH_BYTES = 32;
const SALT_BYTES = 16;
const OK = 0;
const VERIFY_MISMATCH = -35;

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  malloc(bytes: number): number;
  free(pointer: number): void;
  argon2_encodedlen(t: number, m: number, p: number, saltLength: number, hashLength: number, type: number): number;
  argon2_hash(
    ...args: [
      t: number,
      m: number,
      p: number,
      password: number,
      passwordLength: number,
      salt: number,
      saltLength: number,
      hash: number,
      hashLength: number,
      encoded: number,
      encodedLength: number,
      type: number,
      version: number,
    ]
  ): number;
  argon2_verify(encoded: number, password: number, passwordLength: number, type: number): number;
}

let loaded: Exports | undefined;

// Instantiated on first use: most requests never hash, and a cold start should not pay for those that do.
function wasm(): Exports {
  if (loaded === undefined) {
    loaded = new WebAssembly.Instance(argon2).exports as unknown as Exports;
    loaded._initialize();
  }
  return loaded;
}

/** Lends copies of `parts` in wasm memory to `use`, then wipes them: passwords must not linger there. */
function lend<T>(exports: Exports, parts: Uint8Array[], use: (pointers: number[]) => T): T {
  const lent: { pointer: number; length: number }[] = [];
  try {
    for (const part of parts) {
      const pointer = exports.malloc(Math.max(part.length, 1));
      if (pointer === 0) throw new Error("argon2: out of memory");
      lent.push({ pointer, length: part.length });
      new Uint8Array(exports.memory.buffer).set(part, pointer);
    }
    return use(lent.map(({ pointer }) => pointer));
  } finally {
    for (const { pointer, length } of lent) {
      new Uint8Array(exports.memory.buffer).fill(0, pointer, pointer + length);
      exports.free(pointer);
    }
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function hashPassword(password: string): string {
  const exports = wasm();
  const { memoryKiB: m, passes: t, lanes: p } = ARGON2_PARAMETERS;
  const secret = encoder.encode(password);
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const length = exports.argon2_encodedlen(t, m, p, SALT_BYTES, HASH_BYTES, ARGON2ID);
  const parts = [secret, salt, new Uint8Array(HASH_BYTES), new Uint8Array(length)];
  return lend(exports, parts, ([secretAt = 0, saltAt = 0, hashAt = 0, encodedAt = 0]) => {
    const result = exports.argon2_hash(
      t,
      m,
      p,
      secretAt,
      secret.length,
      saltAt,
      SALT_BYTES,
      hashAt,
      HASH_BYTES,
      encodedAt,
      length,
      ARGON2ID,
      VERSION_13,
    );
    if (result !== OK) throw new Error(`argon2_hash failed: ${result}`);
    return decoder.decode(new Uint8Array(exports.memory.buffer).slice(encodedAt, encodedAt + length - 1));
  });
}

function verifyPassword(hash: string, password: string): boolean {
  const exports = wasm();
  const secret = encoder.encode(password);
  return lend(exports, [encoder.encode(`${hash}\0`), secret], ([hashAt = 0, secretAt = 0]) => {
    const result = exports.argon2_verify(hashAt, secretAt, secret.length, ARGON2ID);
    if (result !== OK && result !== VERIFY_MISMATCH) throw new Error(`argon2_verify failed: ${result}`);
    return result === OK;
  });
}

// A hash keeps the isolate busy until it is done; the promises are for callers that may have it made elsewhere.
export const edgePasswords: Passwords = {
  hash: async (password) => hashPassword(password),
  verify: async (hash, password) => verifyPassword(hash, password),
};
