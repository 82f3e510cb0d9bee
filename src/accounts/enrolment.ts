import { eq } from "drizzle-orm";
import { NotAllowed } from "../lib/errors.ts";
import { type Database, query } from "../storage/libsql.ts";
import { enrolmentUses } from "./account-tables.ts";

/** One use of the enrolment token, which the store counts together with the agent that it registers. */
export interface EnrolmentUse {
  tokenHash: string;
  maxUses: number;
}

export interface Enrolment {
  /** Returns the use to count, or rejects if the token has expired or is used up. */
  begin(): Promise<EnrolmentUse>;
}

export interface EnrolmentOptions {
  database: Database;
  token: string | undefined;
  /** Unlimited if undefined. */
  maxUses: number | undefined;
  /** Never if undefined. */
  expiresAtMs: number | undefined;
  now?: () => number;
}

export function createEnrolment(options: EnrolmentOptions): Enrolment {
  const { database, token = "", maxUses = Number.MAX_SAFE_INTEGER, expiresAtMs, now = Date.now } = options;
  return {
    async begin() {
      if (expiresAtMs !== undefined && now() >= expiresAtMs) throw new NotAllowed("The enrolment token has expired");
      const tokenHash = await sha256(token);
      // Saves the expensive hash of a password. Only the store's own check is exact if there are several requests at once.
      const [row] = await query(database.select().from(enrolmentUses).where(eq(enrolmentUses.tokenHash, tokenHash)));
      if (row !== undefined && row.uses >= maxUses) throw usedUp(maxUses);
      return { tokenHash, maxUses };
    },
  };
}

export const usedUp = (maxUses: number): NotAllowed =>
  new NotAllowed(
    `The enrolment token has been used ${maxUses} ${maxUses === 1 ? "time" : "times"}, which is its limit`,
  );

/** In hexadecimal digits. */
async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
