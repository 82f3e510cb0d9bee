import { eq } from "drizzle-orm";
import { NotAllowed } from "../lib/errors.ts";
import type { Labels } from "../lib/selectors.ts";
import { type Database, query } from "../storage/libsql.ts";
import { enrolmentUses } from "./account-tables.ts";

/** One use of an enrolment token. The store counts it in the transaction that creates the agent. */
export interface EnrolmentUse {
  tokenHash: string;
  maxUses: number;
  /** Labels of the new agent. */
  labels: Labels;
}

export interface Enrolment {
  /**
   * Returns the use to count. Throws `NotAllowed` if the token has expired or is used up.
   *
   * @param tokenId of the token that the caller has. Empty for the one in the settings.
   */
  begin(tokenId: string): Promise<EnrolmentUse>;
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
      const tokenHash = await sha256Hex(token);
      // Rejects before the expensive password hash. With concurrent requests only the check in the store is exact.
      const [row] = await query(database.select().from(enrolmentUses).where(eq(enrolmentUses.tokenHash, tokenHash)));
      if (row !== undefined && row.uses >= maxUses) throw usedUp(maxUses);
      return { tokenHash, maxUses, labels: {} };
    },
  };
}

export const usedUp = (maxUses: number): NotAllowed =>
  new NotAllowed(
    `The enrolment token has been used ${maxUses} ${maxUses === 1 ? "time" : "times"}, which is its limit`,
  );

/** Returns the SHA-256 of a text in hexadecimal digits. */
async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
