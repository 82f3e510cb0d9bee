import { type Identity, SCOPES_OF_AGENT, scopesOfApp, scopesOfRoles } from "../auth/permissions.ts";
import { isSame } from "../auth/secrets.ts";
import type { Tokens, VerifiedClaims } from "../auth/tokens.ts";
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
const NO_ACCOUNT = { id: "", version: 0, expiresAtMs: Number.POSITIVE_INFINITY };

export function createAuthenticate(options: SessionOptions): Authenticate {
  const { tokens, doors, now = Date.now } = options;
  const known = new TtlCache<Identity>({ maxEntries: MAX_REMEMBERED, now });

  const doorOf = async (token: string): Promise<Identity | undefined> => {
    for (const kind of ["setup", "enrolment"] as const) {
      const secret = doors[kind];
      if (secret !== undefined && (await isSame(secret, token)))
        return { ...NO_ACCOUNT, kind, name: "token", roles: [], scopes: new Set(), isWhole: true };
    }
    return undefined;
  };

  return async (token) => {
    const remembered = known.get(token);
    if (remembered !== undefined) return remembered;
    const door = await doorOf(token);
    if (door !== undefined) return door;
    // From before the look-up: what it finds may have changed by the time it is back.
    const askedMs = now();
    const claims = await tokens.verify(token);
    const identity = await identify(options, claims);
    if (identity === undefined) throw new NotAuthenticated("Could not validate credentials");
    known.set(token, identity, Math.min(askedMs + REMEMBERED_MS, claims.exp * 1000));
    return identity;
  };
}

/** The account behind the claims as it is now; none where it is gone, or has changed so that its old tokens are no good. */
async function identify(
  { users, agents, apps }: SessionOptions,
  claims: VerifiedClaims,
): Promise<Identity | undefined> {
  const { sub: name, login_type, ver, exp } = claims;
  const known = { name, version: ver, expiresAtMs: exp * 1000 };
  const scopes = new Set(claims.scope.split(" "));
  const carriesAll = (granted: readonly string[]): boolean => granted.every((scope) => scopes.has(scope));
  switch (login_type) {
    case "user": {
      const user = await users.find(name);
      if (user?.version !== ver) return undefined;
      const kind = user.roles.includes("admin") ? "admin" : "user";
      const isWhole = carriesAll(scopesOfRoles(user.roles));
      return { ...known, kind, id: user.id, roles: user.roles, scopes, isWhole };
    }
    case "agent": {
      const agent = await agents.find(name);
      if (agent?.version !== ver) return undefined;
      return { ...known, kind: "agent", id: agent.id, roles: [], scopes, isWhole: carriesAll(SCOPES_OF_AGENT) };
    }
    case "third_party_app": {
      const app = await apps.find(name);
      if (app?.version !== ver) return undefined;
      const isWhole = carriesAll(scopesOfApp(app.permissions));
      return { ...known, kind: "app", id: app.id, roles: [], scopes, isWhole, apIds: app.permissions.ap_ids };
    }
  }
}
