import { sha256Hex } from "../../auth/secrets.ts";
import { NotAllowed, NotAuthenticated } from "../../lib/errors.ts";
import type { Labels } from "../../lib/selectors.ts";
import type { EnrolmentTokenStore } from "./enrolment-token-store.ts";

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

/** The enrolment token of the settings. */
export interface EnrolmentSettings {
  token: string | undefined;
  /** Unlimited if undefined. */
  maxUses: number | undefined;
  /** Never if undefined. */
  expiresAtMs: number | undefined;
}

export interface EnrolmentOptions {
  store: EnrolmentTokenStore;
  settings: EnrolmentSettings;
  now?: () => number;
}

export function createEnrolment({ store, settings, now = Date.now }: EnrolmentOptions): Enrolment {
  const find = async (tokenId: string) => {
    if (tokenId !== "") return await store.find(tokenId);
    const { token = "", maxUses = null, expiresAtMs } = settings;
    const tokenHash = await sha256Hex(token);
    const expiresAt = expiresAtMs === undefined ? null : new Date(expiresAtMs);
    return { tokenHash, labels: {}, maxUses, expiresAt, revokedAt: null, uses: await store.countUses(tokenHash) };
  };

  return {
    async begin(tokenId) {
      const token = await find(tokenId);
      // The caller was authenticated with it a moment ago.
      if (token === undefined || token.revokedAt !== null) throw new NotAuthenticated("Could not validate credentials");
      const { tokenHash, labels, expiresAt, uses } = token;
      const maxUses = token.maxUses ?? Number.MAX_SAFE_INTEGER;
      if (expiresAt !== null && now() >= expiresAt.getTime()) throw new NotAllowed("The enrolment token has expired");
      // Rejects before the expensive password hash. With concurrent requests only the check in the store is exact.
      if (uses >= maxUses) throw usedUp(maxUses);
      return { tokenHash, maxUses, labels };
    },
  };
}

export const usedUp = (maxUses: number): NotAllowed =>
  new NotAllowed(
    `The enrolment token has been used ${maxUses} ${maxUses === 1 ? "time" : "times"}, which is its limit`,
  );
