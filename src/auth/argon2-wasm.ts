import argon2 from "@phi-ag/argon2/argon2.wasm";
import { ARGON2_PARAMETERS, type Passwords } from "./passwords.ts";

/**
 * argon2id in the Worker. It uses only the wasm file of @phi-ag/argon2: the package's JavaScript class mistakes the UTF-16 length of a
 * password for its byte length, and so accepts wrong non-ASCII passwords.
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

// Instantiates on first use to keep cold starts short: most requests never hash.
function wasm(): Exports {
  if (loaded === undefined) {
    loaded = new WebAssembly.Instance(argon2).exports as unknown as Exports;
    loaded._initialize();
  }
  return loaded;
}

/** Copies `buffers` to wasm memory and passes their addresses to `use`. Overwrites the copies afterwards: they hold passwords. */
function withCopies<T>(exports: Exports, buffers: Uint8Array[], use: (pointers: number[]) => T): T {
  const copies: { pointer: number; length: number }[] = [];
  try {
    for (const buffer of buffers) {
      const pointer = exports.malloc(Math.max(buffer.length, 1));
      if (pointer === 0) throw new Error("argon2: out of memory");
      copies.push({ pointer, length: buffer.length });
      new Uint8Array(exports.memory.buffer).set(buffer, pointer);
    }
    return use(copies.map(({ pointer }) => pointer));
  } finally {
    for (const { pointer, length } of copies) {
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
  const buffers = [secret, salt, new Uint8Array(HASH_BYTES), new Uint8Array(length)];
  return withCopies(exports, buffers, ([secretAt = 0, saltAt = 0, hashAt = 0, encodedAt = 0]) => {
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
  return withCopies(exports, [encoder.encode(`${hash}\0`), secret], ([hashAt = 0, secretAt = 0]) => {
    const result = exports.argon2_verify(hashAt, secretAt, secret.length, ARGON2ID);
    if (result !== OK && result !== VERIFY_MISMATCH) throw new Error(`argon2_verify failed: ${result}`);
    return result === OK;
  });
}

// Hashing is synchronous and blocks the isolate. The promises only match the interface of the remote implementation.
export const edgePasswords: Passwords = {
  hash: async (password) => hashPassword(password),
  verify: async (hash, password) => verifyPassword(hash, password),
};
