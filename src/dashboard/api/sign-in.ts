import type { Token } from "../../schemas/token.ts";
import type { TokenData } from "../../schemas/user.ts";
import { startSession } from "../app/session.ts";
import { call } from "./call.ts";

/** The page asks the user to sign in again before the token expires: by this time or this share of its lifetime, whichever is shorter. */
const RENEW_BEFORE_MS = 2 * 60_000;
const RENEW_BEFORE_SHARE = 0.1;

/** Requests a token, and starts a session with it. Throws `ApiError` if the password is wrong. */
export async function signIn(username: string, password: string): Promise<void> {
  const { access_token: token, expires_in } = await call<Token>("POST", "/api/v1/token/", {
    query: { login_type: "user" },
    form: { grant_type: "password", username, password },
    isAnonymous: true,
  });
  const me = await call<TokenData>("GET", "/api/v1/users/me", { token });
  const lifetimeMs = expires_in * 1_000;
  const expiresAtMs = Date.now() + lifetimeMs;
  startSession({
    username: me.username ?? username,
    token,
    expiresAtMs,
    renewAtMs: expiresAtMs - Math.min(RENEW_BEFORE_MS, lifetimeMs * RENEW_BEFORE_SHARE),
    isAdministrator: me.roles.split(",").includes("admin"),
    scopes: me.scopes,
  });
}
