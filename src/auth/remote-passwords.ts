import * as z from "zod";
import { withDeadline } from "../deadline.ts";
import { Unavailable } from "../errors.ts";
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

/** Below the two seconds within which a caller learns that a part is away: what is taken is answered for at once … */
const TAKEN_MS = 1_500;
/** … and done when its turn comes. */
const DONE_MS = 10_000;

const HashAnswer = z.object({ hash: z.string() });
const VerifyAnswer = z.object({ matches: z.boolean() });

export function createRemotePasswords({ url, token }: RemotePasswordsOptions): RemotePasswords {
  const call = async (init: RequestInit): Promise<Response> => {
    const response = await fetch(url, { ...init, headers: { Authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`The password service answered ${response.status}`);
    return response;
  };

  const ask = async (question: { password: string; hash?: string }): Promise<unknown> => {
    try {
      return await withDeadline(DONE_MS, async (doneInTime) => {
        const response = await withDeadline(TAKEN_MS, (takenInTime) => {
          const signal = AbortSignal.any([doneInTime, takenInTime]);
          return call({ method: "POST", body: JSON.stringify(question), signal });
        });
        return await response.json();
      });
    } catch (error) {
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
