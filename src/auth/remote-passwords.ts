import * as z from "zod";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";
import type { Passwords } from "./passwords.ts";

/** Passwords hashed by a process of their own: on one machine the Worker has one thread, and a hash keeps it from all else. */

export interface RemotePasswordsOptions {
  url: string;
  /** What only the service and that process know. */
  token: string;
}

export interface RemotePasswords extends Passwords {
  ping(signal: AbortSignal): Promise<void>;
}

/**
 * Silence after which the process counts as stopped, below the two seconds within which a caller learns that it is. The process sends
 * a byte several times a second until the answer, so that a stopped one differs from a busy one.
 */
const SILENT_MS = 1_200;
/** For the answer, when many wait for their turn. */
const DONE_MS = 10_000;
/** An answer is a hash in JSON, behind the bytes that were sent before it. */
const MAX_ANSWER_BYTES = 4_096;

const HashAnswer = z.object({ hash: z.string() });
const VerifyAnswer = z.object({ matches: z.boolean() });

export function createRemotePasswords({ url, token }: RemotePasswordsOptions): RemotePasswords {
  const call = async (init: RequestInit): Promise<Response> => {
    const response = await fetch(url, { ...init, headers: { Authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`The password service answered ${response.status}`);
    return response;
  };

  const ask = async (question: { password: string; hash?: string }): Promise<unknown> => {
    const request = new AbortController();
    const { signal } = request;
    try {
      return await withDeadline(DONE_MS, async () => {
        const body = JSON.stringify(question);
        const response = await withDeadline(SILENT_MS, () => call({ method: "POST", body, signal }));
        return JSON.parse(await textOf(response));
      });
    } catch (error) {
      // The process then leaves undone what it has not begun.
      request.abort();
      throw new Unavailable("password service", error);
    }
  };

  return {
    hash: async (password) => HashAnswer.parse(await ask({ password })).hash,
    verify: async (hash, password) => VerifyAnswer.parse(await ask({ password, hash })).matches,
    ping: async (signal) => {
      await call({ signal });
    },
  };
}

/** Reads an answer, and throws if it pauses for too long or is too large. */
async function textOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; text.length <= MAX_ANSWER_BYTES; ) {
    const chunk = await withDeadline(SILENT_MS, async () => await reader?.read());
    if (chunk === undefined || chunk.done) return text;
    text += decoder.decode(chunk.value, { stream: true });
  }
  throw new Error("The password service answered too much");
}
