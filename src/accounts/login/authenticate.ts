import { type Authenticate, type Identity, SERVICE_TOKENS, type ServiceTokenKind } from "../../auth/identity.ts";
import { SCOPES_OF_AGENT, scopesOfApp, scopesOfRoles } from "../../auth/roles.ts";
import { timingSafeEqual } from "../../auth/secrets.ts";
import type { Tokens, VerifiedClaims } from "../../auth/tokens.ts";
import { withDeadline } from "../../lib/deadline.ts";
import { NotAuthenticated, Unavailable } from "../../lib/errors.ts";
import { TtlCache } from "../../lib/ttl-cache.ts";
import { isEmulated } from "../agent-names.ts";
import type { AgentStore } from "../agent-store.ts";
import type { AppStore } from "../app-store.ts";
import type { AuditFeed } from "../audit-feed.ts";
import type { UserStore } from "../user-store.ts";

export interface SessionOptions {
  tokens: Tokens;
  users: UserStore;
  agents: AgentStore;
  apps: AppStore;
  changes: AuditFeed;
  /** The token of each; an unset one opens nothing. */
  serviceTokens: Record<ServiceTokenKind, string | undefined>;
  now?: () => number;
}

/**
 * Who a token speaks for is remembered, so that a request needs neither a signature checked nor an account looked up. What ends that is
 * the audit trail, which is looked at every two seconds: one look for all accounts, however many there are. A change of password or
 * role must end the tokens of an account within five seconds; without a look for so long, nothing that is remembered counts.
 */
const REMEMBERED_MS = 600_000;
const LOOK_EVERY_MS = 2_000;
const MAX_UNSEEN_MS = 5_000;
/** Short: what the request is about needs its time, too, and both together must not take two seconds. */
const LOOK_MS = 400;
const LOOK_AGAIN_MS = 1_000;
const MAX_REMEMBERED = 20_000;
const NO_ACCOUNT = { id: "", version: 0, expiresAtMs: Number.POSITIVE_INFINITY };

export function createAuthenticate(options: SessionOptions): Authenticate {
  const { tokens, changes, serviceTokens, now = Date.now } = options;
  const known = new TtlCache<Identity>({ maxEntries: MAX_REMEMBERED, now });
  let mark: number | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;
  let begunMs = Number.NEGATIVE_INFINITY;

  const look = async (): Promise<void> => {
    const askedMs = now();
    const seen = await withDeadline(LOOK_MS, () => changes.since(mark));
    const { changed } = seen;
    if (changed === "everything") known.forget(() => true);
    else if (changed.size > 0) known.forget(isAmong(changed));
    // Of two looks at once the later one to come back may have seen less.
    mark = Math.max(mark ?? 0, seen.mark);
    lookedMs = Math.max(lookedMs, askedMs);
  };
  const lookIfDue = async (): Promise<void> => {
    const unseenMs = now() - lookedMs;
    if (unseenMs < LOOK_EVERY_MS) return;
    // One at a time: hundreds of requests at once would ask the same, and each wait for all the others' answers.
    if (unseenMs < MAX_UNSEEN_MS - LOOK_MS && now() - begunMs < LOOK_AGAIN_MS) return;
    begunMs = now();
    try {
      await look();
    } catch (error) {
      if (now() - lookedMs < MAX_UNSEEN_MS) return;
      throw error instanceof Unavailable ? error : new Unavailable("accounts database", error);
    }
  };

  const doorOf = async (token: string): Promise<Identity | undefined> => {
    for (const kind of SERVICE_TOKENS) {
      const secret = serviceTokens[kind];
      if (secret !== undefined && (await timingSafeEqual(secret, token)))
        return { ...NO_ACCOUNT, kind, name: "token", roles: [], scopes: new Set(), hasFullScope: true };
    }
    return undefined;
  };

  return async (token) => {
    try {
      await lookIfDue();
    } catch (error) {
      // A door needs no account: whoever watches the service is to see that the database is away.
      const door = await doorOf(token);
      if (door !== undefined) return door;
      throw error;
    }
    const remembered = known.get(token);
    if (remembered !== undefined) return remembered;
    const door = await doorOf(token);
    if (door !== undefined) return door;
    const markBefore = mark;
    const claims = await tokens.verify(token);
    const identity = await identify(options, claims);
    if (identity === undefined) throw new NotAuthenticated("Could not validate credentials");
    // What was found may have changed by the time it is back: remembered only if nothing has.
    if (mark === markBefore) known.set(token, identity, Math.min(now() + REMEMBERED_MS, claims.exp * 1000));
    return identity;
  };
}

/** As the audit trail names an account. */
const objectOf = ({ kind, name }: Identity): string => `${kind === "admin" ? "user" : kind}:${name}`;

/** Whether an account is named there. Emulated agents come and go by the thousand, under the name of their job. */
function isAmong(changed: ReadonlySet<string>): (identity: Identity) => boolean {
  const hasJobs = [...changed].some((object) => object.startsWith("job:"));
  return (identity) =>
    changed.has(objectOf(identity)) || (hasJobs && identity.kind === "agent" && isEmulated(identity.name));
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
      const hasFullScope = carriesAll(scopesOfRoles(user.roles));
      return { ...known, kind, id: user.id, roles: user.roles, scopes, hasFullScope };
    }
    case "agent": {
      const agent = await agents.find(name);
      if (agent?.version !== ver) return undefined;
      return { ...known, kind: "agent", id: agent.id, roles: [], scopes, hasFullScope: carriesAll(SCOPES_OF_AGENT) };
    }
    case "third_party_app": {
      const app = await apps.find(name);
      if (app?.version !== ver) return undefined;
      const hasFullScope = carriesAll(scopesOfApp(app.permissions));
      return { ...known, kind: "app", id: app.id, roles: [], scopes, hasFullScope, apIds: app.permissions.ap_ids };
    }
  }
}
