import type { UserStore } from "../accounts/user-store.ts";
import { NotAuthenticated } from "../errors.ts";
import { TtlCache } from "../ttl-cache.ts";
import type { Actor } from "./permissions.ts";
import type { Tokens } from "./tokens.ts";

/** How long a token may outlive the change that ends it; also how long a request needs no look-up. */
const ACCOUNT_TTL_MS = 5_000;
const MAX_ACCOUNTS = 10_000;

export interface Sessions {
  authenticate(token: string): Promise<Actor>;
}

export function createSessions(tokens: Tokens, users: UserStore): Sessions {
  const versions = new TtlCache<{ version: number; roles: string[] }>({
    ttlMs: ACCOUNT_TTL_MS,
    maxEntries: MAX_ACCOUNTS,
  });

  return {
    async authenticate(token) {
      const claims = await tokens.verify(token);
      const key = `${claims.login_type}:${claims.sub}`;
      let account = versions.get(key);
      if (account === undefined && claims.login_type === "user") {
        account = await users.find(claims.sub);
        if (account !== undefined) versions.set(key, { version: account.version, roles: account.roles });
      }
      if (account?.version !== claims.ver) throw new NotAuthenticated("Could not validate credentials");
      return {
        loginType: claims.login_type,
        name: claims.sub,
        roles: account.roles,
        scopes: claims.scope.split(" "),
      };
    },
  };
}
