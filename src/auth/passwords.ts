import * as z from "zod";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";

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

export interface RemotePasswordsOptions {
  url: string;
  /** Shared secret of the Worker and the password service. */
  token: string;
}

export interface RemotePasswords extends Passwords {
  ping(signal: AbortSignal): Promise<void>;
}

/**
 * Maximum time between two bytes. The password service sends keep-alive bytes several times a second until the hash is ready, which
 * distinguishes a busy process from a stopped one. Shorter than the two seconds within which a caller must learn of an outage.
 */
const MAX_SILENCE_MS = 1_200;
/** Limit for the whole response, while many requests are queued. */
const TIMEOUT_MS = 10_000;
/** A response consists of keep-alive bytes and then a hash in JSON. */
const MAX_RESPONSE_BYTES = 4_096;

const HashResponse = z.object({ hash: z.string() });
const VerifyResponse = z.object({ matches: z.boolean() });

/**
 * Hashes passwords in a separate process, the password service. On one machine the Worker has one thread, and a hash would block all
 * other requests.
 */
export function createRemotePasswords({ url, token }: RemotePasswordsOptions): RemotePasswords {
  const call = async (init: RequestInit): Promise<Response> => {
    const response = await fetch(url, { ...init, headers: { Authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`The password service returned status ${response.status}`);
    return response;
  };

  const post = async (input: { password: string; hash?: string }): Promise<unknown> => {
    const controller = new AbortController();
    const { signal } = controller;
    try {
      return await withDeadline(TIMEOUT_MS, async () => {
        const body = JSON.stringify(input);
        const response = await withDeadline(MAX_SILENCE_MS, () => call({ method: "POST", body, signal }));
        return JSON.parse(await readText(response));
      });
    } catch (error) {
      // The password service skips a hash that it has not started when the request is aborted.
      controller.abort();
      throw new Unavailable("password service", error);
    }
  };

  return {
    hash: async (password) => HashResponse.parse(await post({ password })).hash,
    verify: async (hash, password) => VerifyResponse.parse(await post({ password, hash })).matches,
    ping: async (signal) => {
      await call({ signal });
    },
  };
}

/** Reads a response body. Throws if it pauses for too long or is too large. */
async function readText({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; text.length <= MAX_RESPONSE_BYTES; ) {
    const chunk = await withDeadline(MAX_SILENCE_MS, async () => await reader?.read());
    if (chunk === undefined || chunk.done) return text;
    text += decoder.decode(chunk.value, { stream: true });
  }
  throw new Error("The response of the password service is too large");
}
