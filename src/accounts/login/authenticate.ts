import { type Authenticate, type Identity, SERVICE_TOKENS, type ServiceTokenKind } from "../../auth/identity.ts";
import { SCOPES_OF_AGENT, scopesOfApp, scopesOfUser } from "../../auth/roles.ts";
import { sha256Hex, timingSafeEqual } from "../../auth/secrets.ts";
import type { Tokens, VerifiedClaims } from "../../auth/tokens.ts";
import { withDeadline } from "../../lib/deadline.ts";
import { NotAuthenticated, Unavailable } from "../../lib/errors.ts";
import { TtlCache } from "../../lib/ttl-cache.ts";
import type { StoredGrant } from "../account-tables.ts";
import type { AgentStore } from "../agents/agent-store.ts";
import type { AppStore } from "../app-store.ts";
import { type AuditFeed, type ChangedObjects, concernedBy } from "../audit-feed.ts";
import type { EnrolmentTokenStore } from "../enrolment/enrolment-token-store.ts";
import { TOKEN_PREFIX } from "../enrolment/enrolment-tokens.ts";
import type { GroupStore } from "../group-store.ts";
import type { UserStore } from "../user-store.ts";

export interface AuthenticateOptions {
  tokens: Tokens;
  users: UserStore;
  agents: AgentStore;
  apps: AppStore;
  groups: Pick<GroupStore, "resolveGrants">;
  enrolmentTokens: Pick<EnrolmentTokenStore, "findValid">;
  auditFeed: AuditFeed;
  /** Called with each set of changes, before the request that has read it continues. */
  onChanges?: (changed: ChangedObjects) => void;
  /** An undefined token authenticates nothing. */
  serviceTokens: Record<ServiceTokenKind, string | undefined>;
  now?: () => number;
}

/** Longest time that an identity is cached. */
const CACHE_MS = 600_000;
const MAX_CACHED = 20_000;
const REFRESH_INTERVAL_MS = 2_000;
/** A change of password or roles must invalidate the tokens of an account within this time. */
const MAX_STALENESS_MS = 5_000;
/**
 * Limit of a refresh while the cache can still be used. Short, because the refresh and the rest of the request together must take less than
 * two seconds. Later, the request ends if the refresh fails, so the refresh may take as long as any query: a busy machine needs more time.
 */
const EARLY_REFRESH_MS = 400;
const REFRESH_RETRY_MS = 1_000;
/** Begins the objects of audit entries about groups. */
const GROUP_PREFIX = "group:";
const NO_ACCOUNT = {
  id: "",
  version: 0,
  expiresAtMs: Number.POSITIVE_INFINITY,
  roles: [],
  scopes: new Set<string>(),
  hasFullScope: true,
};
const invalidToken = (): NotAuthenticated => new NotAuthenticated("Could not validate credentials");

/**
 * Caches the identity behind each token, so that most requests need no signature check and no account query. A refresh reads the audit
 * feed, one query for all accounts, and removes the identities whose account has changed. If no refresh succeeds for
 * `MAX_STALENESS_MS`, the cache must not be used, and requests fail with `Unavailable`.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { tokens, auditFeed, serviceTokens, now = Date.now } = options;
  const cache = new TtlCache<Identity>({ maxEntries: MAX_CACHED, now });
  let mark: number | undefined;
  let refreshedMs = Number.NEGATIVE_INFINITY;
  let attemptedMs = Number.NEGATIVE_INFINITY;

  const refresh = async (isRequired: boolean): Promise<void> => {
    const startedMs = now();
    const read = () => auditFeed.since(mark);
    const { mark: newMark, changed } = await (isRequired ? read() : withDeadline(EARLY_REFRESH_MS, read));
    if (changed === "everything" || changed.size > 0) cache.deleteWhere(isChanged(changed));
    options.onChanges?.(changed);
    // Of two concurrent refreshes, the one that finishes later may have read less.
    mark = Math.max(mark ?? 0, newMark);
    refreshedMs = Math.max(refreshedMs, startedMs);
  };
  const refreshIfStale = async (): Promise<void> => {
    const staleMs = now() - refreshedMs;
    if (staleMs < REFRESH_INTERVAL_MS) return;
    // One refresh at a time: otherwise hundreds of concurrent requests would each send the same query and wait for it.
    const isRequired = staleMs >= MAX_STALENESS_MS - EARLY_REFRESH_MS;
    if (!isRequired && now() - attemptedMs < REFRESH_RETRY_MS) return;
    attemptedMs = now();
    try {
      await refresh(isRequired);
    } catch (error) {
      if (now() - refreshedMs < MAX_STALENESS_MS) return;
      throw error instanceof Unavailable ? error : new Unavailable("accounts database", error);
    }
  };

  const identifyServiceToken = async (token: string): Promise<Identity | undefined> => {
    for (const kind of SERVICE_TOKENS) {
      const secret = serviceTokens[kind];
      if (secret !== undefined && (await timingSafeEqual(secret, token))) return { ...NO_ACCOUNT, kind, name: "token" };
    }
    return undefined;
  };
  /** Queries each time: access points use such a token once. */
  const identifyEnrolmentToken = async (token: string): Promise<Identity> => {
    const found = await options.enrolmentTokens.findValid(await sha256Hex(token));
    if (found === undefined) throw invalidToken();
    return { ...NO_ACCOUNT, kind: "enrolment", id: found.id, name: found.prefix };
  };

  return async (token) => {
    try {
      await refreshIfStale();
    } catch (error) {
      // A service token needs no account: the scraper must be able to see that the database is unavailable.
      const service = await identifyServiceToken(token);
      if (service !== undefined) return service;
      throw error;
    }
    const cached = cache.get(token);
    if (cached !== undefined) return cached;
    const service = await identifyServiceToken(token);
    if (service !== undefined) return service;
    if (token.startsWith(TOKEN_PREFIX)) return await identifyEnrolmentToken(token);
    const markBefore = mark;
    const claims = await tokens.verify(token);
    const identity = await identify(options, claims);
    if (identity === undefined) throw invalidToken();
    // Caches only if no refresh ran since: it may have reported a change that the query did not see yet.
    if (mark === markBefore) cache.set(token, identity, Math.min(now() + CACHE_MS, claims.exp * 1000));
    return identity;
  };
}

/** Service tokens are never cached and belong to no account. */
function isChanged(changed: ChangedObjects): (identity: Identity) => boolean {
  const isConcerned = concernedBy(changed);
  // Grants may refer to groups. The identity has only their conditions.
  const isGroupChanged = changed !== "everything" && [...changed].some((object) => object.startsWith(GROUP_PREFIX));
  return ({ kind, name, grants }) => {
    if (isGroupChanged && grants !== undefined) return true;
    if (kind === "agent" || kind === "app") return isConcerned(kind, name);
    return isConcerned("user", name);
  };
}

/** Returns the account of the claims. Undefined if it was deleted, or if a change has invalidated its earlier tokens. */
async function identify(
  { users, agents, apps, groups }: AuthenticateOptions,
  claims: VerifiedClaims,
): Promise<Identity | undefined> {
  const { sub: name, login_type, ver, exp } = claims;
  const common = { name, version: ver, expiresAtMs: exp * 1000 };
  const scopes = new Set(claims.scope.split(" "));
  const hasAll = (granted: readonly string[]): boolean => granted.every((scope) => scopes.has(scope));
  const resolve = async (grants: StoredGrant[] | null) =>
    grants === null ? undefined : await groups.resolveGrants(grants);
  switch (login_type) {
    case "user": {
      const user = await users.find(name);
      if (user?.version !== ver) return undefined;
      const kind = user.roles.includes("admin") ? "admin" : "user";
      const grants = kind === "admin" ? undefined : await resolve(user.grants);
      const hasFullScope = hasAll(scopesOfUser(user.roles, user.grants));
      return { ...common, kind, id: user.id, roles: user.roles, scopes, hasFullScope, grants };
    }
    case "agent": {
      const agent = await agents.find(name);
      if (agent?.version !== ver) return undefined;
      return { ...common, kind: "agent", id: agent.id, roles: [], scopes, hasFullScope: hasAll(SCOPES_OF_AGENT) };
    }
    case "third_party_app": {
      const app = await apps.find(name);
      if (app?.version !== ver) return undefined;
      const grants = await resolve(app.grants);
      const { ap_ids: apIds, agent_label: agentLabel } = app.permissions;
      const hasFullScope = hasAll(scopesOfApp(app.permissions, app.grants));
      return { ...common, kind: "app", id: app.id, roles: [], scopes, hasFullScope, apIds, agentLabel, grants };
    }
  }
}
