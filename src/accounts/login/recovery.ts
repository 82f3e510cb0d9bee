import type { Passwords } from "../../auth/passwords.ts";
import { randomSecret, sha256 } from "../../auth/secrets.ts";
import { Malformed } from "../../lib/errors.ts";
import { log } from "../../lib/log.ts";
import type { createMailer } from "../../mail/mailer.ts";
import { passwordResetMessage } from "../../mail/password-reset.ts";
import type { PasswordReset } from "../../schemas/user.ts";
import { anonymous } from "../audit.ts";
import type { UserStore } from "../user-store.ts";
import { clientNetwork, UNKNOWN_ADDRESS } from "./client-network.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** A forgotten password: a link by e-mail, and what it leads to. */
export interface Recovery {
  /**
   * Takes a request for a link. What it returns looks the account up and sends the message; run it after the answer, so that the
   * time the answer takes does not tell whether there is such an account.
   */
  request(username: string, requestId: string): Promise<() => Promise<void>>;
  reset(request: PasswordReset, clientAddress: string, requestId: string): Promise<void>;
}

export interface RecoveryOptions {
  users: UserStore;
  attempts: RateLimiter;
  passwords: Passwords;
  mailer: ReturnType<typeof createMailer>;
  /** Where the service is reached from outside. Never taken from a request: a forged Host would get the link. */
  publicUrl: string | undefined;
}

const VALID_MINUTES = 15;
const MAX_RECOVERIES_PER_MINUTE = 5;
const MAX_FAILED_RESETS_PER_MINUTE = 10;

export function createRecovery({ users, attempts, passwords, mailer, publicUrl }: RecoveryOptions): Recovery {
  const sendLink = async (username: string, requestId: string): Promise<void> => {
    const user = await users.find(username);
    if (user === undefined) return;
    const missing =
      publicUrl === undefined ? "The setting PUBLIC_URL is missing." : "missing" in mailer && mailer.missing;
    if (typeof mailer !== "function" || missing) {
      log.error("No message sent for a forgotten password", { request_id: requestId, error: String(missing) });
      return;
    }
    const token = randomSecret();
    const expiresAt = new Date(Date.now() + VALID_MINUTES * 60_000);
    await users.addResetToken(await sha256(token), user, expiresAt, anonymous(requestId));
    // Behind the #: browsers do not send that part, so the token is in no server's log.
    await mailer(passwordResetMessage(username, `${publicUrl}/#/reset-password/${token}`, VALID_MINUTES));
  };

  return {
    async request(username, requestId) {
      await attempts.take(`recovery:${username}`, MAX_RECOVERIES_PER_MINUTE);
      return () => sendLink(username, requestId);
    },

    async reset({ token, new_password }, clientAddress, requestId) {
      const limit = {
        key: `reset:${clientNetwork(clientAddress) ?? UNKNOWN_ADDRESS}`,
        max: MAX_FAILED_RESETS_PER_MINUTE,
        refusal: "Too many failed password resets from this address",
      };
      const redeemed = await attempts.limitFailures([limit], async () => {
        const tokenHash = await sha256(token);
        const isGood =
          (await users.hasResetToken(tokenHash)) &&
          (await users.redeemResetToken(tokenHash, await passwords.hash(new_password), anonymous(requestId)));
        return isGood || undefined;
      });
      if (!redeemed) throw new Malformed("Invalid or expired token");
    },
  };
}
