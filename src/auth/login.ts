import type { UserStore } from "../accounts/user-store.ts";
import { NotAuthenticated } from "../errors.ts";
import type { LoginForm, Token } from "../schemas/token.ts";
import { DUMMY_HASH, verifyPassword } from "./passwords.ts";
import { scopesOf } from "./permissions.ts";
import type { LoginType, Tokens } from "./tokens.ts";

/** Trades credentials for a token. */
export type Login = (loginType: LoginType, form: LoginForm) => Promise<Token>;

export function createLogin(users: UserStore, tokens: Tokens): Login {
  return async (loginType, { username, password, scope }) => {
    const account = loginType === "user" ? await users.find(username.trim().toLowerCase()) : undefined;
    // An unknown account is checked as well, against a hash that nothing matches, so that the time taken says nothing.
    const matches = verifyPassword(account?.passwordHash ?? DUMMY_HASH, password);
    if (account === undefined || !matches) throw new NotAuthenticated("Incorrect username or password");
    return {
      access_token: await tokens.issue({
        sub: account.username,
        login_type: loginType,
        roles: account.roles,
        scope: narrow(scopesOf(account.roles), scope),
        ver: account.version,
      }),
      token_type: "bearer",
      expires_in: tokens.lifetimeSeconds,
    };
  };
}

/** What of the granted scopes was asked for; nothing asked for means all, and what is not granted is left out. */
function narrow(granted: string[], asked: string): string {
  const wanted = new Set(asked.split(/\s+/).filter((scope) => scope !== ""));
  return granted.filter((scope) => wanted.size === 0 || wanted.has(scope)).join(" ");
}
