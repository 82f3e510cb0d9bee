import type { Passwords } from "../../auth/passwords.ts";
import { randomSecret, sha256 } from "../../auth/secrets.ts";
import { Malformed } from "../../lib/errors.ts";
import { log } from "../../lib/log.ts";
import type { createMailer } from "../../mail/mailer.ts";
import { passwordResetMessage } from "../../mail/password-reset.ts";
import type { PasswordReset } from "../../schemas/user.ts";
import { anonymous } from "../audit.ts";
import type { JobRechecks } from "../owned-jobs.ts";
import type { UserStore } from "../user-store.ts";
import { clientNetwork, UNKNOWN_ADDRESS } from "./client-network.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** Resets forgotten passwords with a link that is sent by e-mail. */
export interface Recovery {
  /**
   * Accepts a request for a link. Returns a function that looks the account up and sends the message. Run it after the response: the
   * response time must not reveal whether the account exists.
   */
  request(username: string, requestId: string): Promise<() => Promise<void>>;
  reset(request: PasswordReset, clientAddress: string, requestId: string): Promise<void>;
}

export interface RecoveryOptions {
  users: UserStore;
  rateLimiter: RateLimiter;
  passwords: Passwords;
  mailer: ReturnType<typeof createMailer>;
  rechecks: JobRechecks;
  /** Public URL of the service, for links. Never taken from a request: a forged Host header would receive the token. */
  publicUrl: string | undefined;
}

const VALID_MINUTES = 15;
const MAX_RECOVERIES_PER_MINUTE = 5;
const MAX_FAILED_RESETS_PER_MINUTE = 10;

export function createRecovery(options: RecoveryOptions): Recovery {
  const { users, rateLimiter, passwords, mailer, rechecks, publicUrl } = options;
  const sendLink = async (username: string, requestId: string): Promise<void> => {
    const user = await users.find(username);
    if (user === undefined) return;
    const missing =
      publicUrl === undefined ? "The setting PUBLIC_URL is missing." : "missing" in mailer && mailer.missing;
    if (typeof mailer !== "function" || missing) {
      log.error("password reset mail not sent", { request_id: requestId, error: String(missing) });
      return;
    }
    const token = randomSecret();
    const expiresAt = new Date(Date.now() + VALID_MINUTES * 60_000);
    await users.addResetToken(await sha256(token), user, expiresAt, anonymous(requestId));
    // The token is in the fragment: browsers do not send it, so that no server logs it.
    await mailer(passwordResetMessage(username, `${publicUrl}/#/reset-password/${token}`, VALID_MINUTES));
  };

  return {
    async request(username, requestId) {
      await rateLimiter.take(`recovery:${username}`, MAX_RECOVERIES_PER_MINUTE);
      return () => sendLink(username, requestId);
    },

    async reset({ token, new_password }, clientAddress, requestId) {
      const limit = {
        key: `reset:${clientNetwork(clientAddress) ?? UNKNOWN_ADDRESS}`,
        max: MAX_FAILED_RESETS_PER_MINUTE,
        message: "Too many failed password resets from this address",
      };
      const userId = await rateLimiter.limitFailures([limit], async () => {
        const tokenHash = await sha256(token);
        if (!(await users.hasResetToken(tokenHash))) return undefined;
        return await users.redeemResetToken(tokenHash, await passwords.hash(new_password), anonymous(requestId));
      });
      if (userId === undefined) throw new Malformed("Invalid or expired token");
      rechecks.recheckJobsOf({ ownerId: userId });
    },
  };
}
