import type { Authenticate, Identity } from "../../auth/identity.ts";
import { sha256 } from "../../auth/secrets.ts";
import type { LoginType } from "../../auth/tokens.ts";
import { NotAuthenticated } from "../../lib/errors.ts";
import { TtlCache } from "../../lib/ttl-cache.ts";
import type { Login, LoginOrigin } from "./login.ts";

export interface LoginCredentials {
  loginType: LoginType;
  username: string;
  password: string;
}

const MAX_CACHED = 10_000;
const CACHE_MS = 600_000;

/**
 * Logs a client in that sends its credentials with every request, and authenticates the token. Caches the token: a login takes long, and
 * has limits. A change of the account invalidates the token, and the next request logs in again.
 */
export function createAuthenticateLogin(
  login: Login,
  authenticate: Authenticate,
  now: () => number = Date.now,
): (credentials: LoginCredentials, origin: LoginOrigin) => Promise<Identity> {
  const tokens = new TtlCache<string>({ maxEntries: MAX_CACHED, now });

  return async ({ loginType, username, password }, origin) => {
    // A hash: the memory of the process should not keep passwords.
    const key = await sha256(JSON.stringify([loginType, username, password]));
    const cached = tokens.get(key);
    if (cached !== undefined) {
      try {
        return await authenticate(cached);
      } catch (error) {
        if (!(error instanceof NotAuthenticated)) throw error;
      }
    }
    const { token, afterResponse } = await login(loginType, { username, password, scope: "" }, origin);
    const identity = await authenticate(token.access_token);
    tokens.set(key, token.access_token, now() + Math.min(CACHE_MS, (token.expires_in * 1_000) / 2));
    await afterResponse();
    return identity;
  };
}
