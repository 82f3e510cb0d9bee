import type { Identity } from "../auth/permissions.ts";
import { isSame } from "../auth/secrets.ts";
import type { Claims, Tokens } from "../auth/tokens.ts";
import { NotAuthenticated } from "../errors.ts";
import { TtlCache } from "../ttl-cache.ts";
import type { AgentStore } from "./agent-store.ts";
import type { AppStore } from "./app-store.ts";
import type { UserStore } from "./user-store.ts";

/** Finds out who a bearer token speaks for. */
export type Authenticate = (token: string) => Promise<Identity>;

export interface SessionOptions {
  tokens: Tokens;
  users: UserStore;
  agents: AgentStore;
  apps: AppStore;
  /** Tokens that are no accounts' but open one door each; an unset one opens nothing. */
  doors: { setup: string | undefined; enrolment: string | undefined };
  now?: () => number;
}

/**
 * How long an answer is remembered: the time within which a change of password or role must end the tokens of an account. While
 * it is, a request needs neither a signature checked nor an account looked up.
 */
const REMEMBERED_MS = 5_000;
const MAX_REMEMBERED = 10_000;

export function createAuthenticate(options: SessionOptions): Authenticate {
  const { tokens, doors, now = Date.now } = options;
  const known = new TtlCache<{ identity: Identity; expiresMs: number }>({
    ttlMs: REMEMBERED_MS,
    maxEntries: MAX_REMEMBERED,
    now,
  });

  const doorOf = async (token: string): Promise<Identity | undefined> => {
    for (const kind of ["setup", "enrolment"] as const) {
      const secret = doors[kind];
      if (secret !== undefined && (await isSame(secret, token)))
        return { kind, name: "token", roles: [], scopes: new Set() };
    }
    return undefined;
  };

  return async (token) => {
    const remembered = known.get(token);
    if (remembered !== undefined && remembered.expiresMs > now()) return remembered.identity;
    const door = await doorOf(token);
    if (door !== undefined) return door;
    const claims = await tokens.verify(token);
    const identity = await identify(options, claims);
    if (identity === undefined) throw new NotAuthenticated("Could not validate credentials");
    known.set(token, { identity, expiresMs: claims.exp * 1000 });
    return identity;
  };
}

/** The account behind the claims as it is now; none where it is gone, or has changed so that its old tokens are no good. */
async function identify({ users, agents, apps }: SessionOptions, claims: Claims): Promise<Identity | undefined> {
  const { sub: name, login_type, ver } = claims;
  const scopes = new Set(claims.scope.split(" "));
  switch (login_type) {
    case "user": {
      const user = await users.find(name);
      if (user?.version !== ver) return undefined;
      return { kind: user.roles.includes("admin") ? "admin" : "user", name, roles: user.roles, scopes };
    }
    case "agent": {
      const agent = await agents.find(name);
      return agent?.version === ver ? { kind: "agent", name, roles: [], scopes } : undefined;
    }
    case "third_party_app": {
      const app = await apps.find(name);
      return app?.version === ver ? { kind: "app", name, roles: [], scopes, apIds: app.permissions.ap_ids } : undefined;
    }
  }
}
