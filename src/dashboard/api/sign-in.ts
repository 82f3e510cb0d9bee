import type { Token } from "../../schemas/token.ts";
import type { TokenData } from "../../schemas/user.ts";
import { begin } from "../app/session.ts";
import { call } from "./call.ts";

/** How long before its end a token is asked to be renewed; a short-lived one later. */
const RENEW_BEFORE_MS = 2 * 60_000;
const RENEW_BEFORE_SHARE = 0.1;

export async function signIn(username: string, password: string): Promise<void> {
  const { access_token: token, expires_in } = await call<Token>("POST", "/api/v1/token/", {
    query: { login_type: "user" },
    form: { grant_type: "password", username, password },
    isAnonymous: true,
  });
  const me = await call<TokenData>("GET", "/api/v1/users/me", { token });
  const lifetimeMs = expires_in * 1_000;
  const expiresAtMs = Date.now() + lifetimeMs;
  begin({
    username: me.username ?? username,
    token,
    expiresAtMs,
    renewAtMs: expiresAtMs - Math.min(RENEW_BEFORE_MS, lifetimeMs * RENEW_BEFORE_SHARE),
    isAdministrator: me.roles.split(",").includes("admin"),
  });
}
