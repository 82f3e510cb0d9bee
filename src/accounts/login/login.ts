import { sql } from "drizzle-orm";
import type { Encryptor } from "../../auth/encryptor.ts";
import { DUMMY_HASH, type Passwords } from "../../auth/passwords.ts";
import { SCOPES_OF_AGENT, scopesOfApp, scopesOfUser } from "../../auth/roles.ts";
import { type SecretHasher, timingSafeEqual } from "../../auth/secrets.ts";
import type { Claims, LoginType, Tokens } from "../../auth/tokens.ts";
import { NotAuthenticated } from "../../lib/errors.ts";
import { log } from "../../lib/log.ts";
import type { LoginForm, Token } from "../../schemas/accounts/token.ts";
import { Email, Identifier } from "../../schemas/primitives.ts";
import { agents, apps, users } from "../account-tables.ts";
import type { AgentRow, AgentStore } from "../agents/agent-store.ts";
import type { AppRow, AppStore } from "../app-store.ts";
import type { UserStore } from "../user-store.ts";
import { clientNetwork } from "./client-network.ts";
import type { FailureLimit, RateLimiter } from "./rate-limiter.ts";

/** Checks credentials and issues a token. Run `afterResponse` after the response: the caller need not wait for it. */
export type Login = (
  loginType: LoginType,
  form: LoginForm,
  origin: LoginOrigin,
) => Promise<{ token: Token; afterResponse: () => Promise<void> }>;

export interface LoginOrigin {
  requestId: string;
  /** The client's address, for the limits. */
  address: string;
}

export interface LoginOptions {
  users: UserStore;
  agents: AgentStore;
  apps: AppStore;
  rateLimiter: RateLimiter;
  passwords: Passwords;
  secretHasher: SecretHasher;
  apiKeys: Encryptor;
  tokens: Tokens;
}

/**
 * Maximum number of failed logins per minute. The first limit stops guesses at one account without locking out its owner, who uses another
 * address. The other two stop guesses at one account from many addresses, and at many accounts from one address.
 */
const MAX_FAILURES = { byNameAndAddress: 10, byName: 100, byAddress: 100 } as const;
/** Which failure under a name within a minute is reported. From one address, it is the last one before the limit. */
const REPORTED_FAILURES = MAX_FAILURES.byNameAndAddress;

/** The table, column and name in the audit trail of each kind of account. */
const ACCOUNTS = {
  user: { table: users, column: users.username, object: "user" },
  agent: { table: agents, column: agents.apId, object: "agent" },
  third_party_app: { table: apps, column: apps.appName, object: "app" },
} as const;

/** Returns the limits that a failed login counts for. */
function failureLimits(loginType: LoginType, name: string, { address, requestId }: LoginOrigin): FailureLimit[] {
  const byName = `login:${loginType}:${name}`;
  const network = clientNetwork(address);
  const { table, column, object } = ACCOUNTS[loginType];
  const nameLimit = {
    key: byName,
    max: MAX_FAILURES.byName,
    message: "Too many failed logins under this name",
    report: {
      at: REPORTED_FAILURES,
      object: `${object}:${name}`,
      condition: sql`exists (select 1 from ${table} where ${column} = ${name})`,
      address: network,
      requestId,
    },
  };
  if (network === undefined) return [nameLimit];
  return [
    {
      key: `${byName}@${network}`,
      max: MAX_FAILURES.byNameAndAddress,
      message: "Too many failed logins under this name from this address",
    },
    nameLimit,
    {
      key: `login@${network}`,
      max: MAX_FAILURES.byAddress,
      message: "Too many failed logins from this address",
      report: {
        at: MAX_FAILURES.byAddress,
        object: `address:${network}`,
        condition: sql`true`,
        address: network,
        requestId,
      },
    },
  ];
}

/** Valid names. The log omits other names: people type passwords into the wrong field by mistake. */
const NAMES = { user: Email, agent: Identifier, third_party_app: Identifier } as const;

/** The claims for a token, with all scopes that the account grants. */
type Grant = Omit<Claims, "scope"> & { scopes: readonly string[]; afterResponse?: () => Promise<void> };

/** Runs a login attempt and enforces the limits on failures. The attempt returns undefined if the credentials do not match. */
type Limit = (attempt: () => Promise<Grant | undefined>) => Promise<Grant | undefined>;

export function createLogin(options: LoginOptions): Login {
  const { users, agents, apps, rateLimiter, passwords, secretHasher, apiKeys, tokens } = options;

  const asUser = async (name: string, password: string): Promise<Grant | undefined> => {
    const user = await users.find(name);
    // Verifies a hash for an unknown account, too: the response time must not reveal whether the account exists.
    const matches = await passwords.verify(user?.passwordHash ?? DUMMY_HASH, password);
    if (user === undefined || !matches) return undefined;
    return {
      sub: name,
      login_type: "user",
      roles: user.roles,
      ver: user.version,
      scopes: scopesOfUser(user.roles, user.grants),
    };
  };

  const grantAgent = ({ apId, version, onboard }: AgentRow): Grant => ({
    sub: apId,
    login_type: "agent",
    roles: [],
    ver: version,
    scopes: SCOPES_OF_AGENT,
    // If this fails, the next login repeats it.
    ...(!onboard && { afterResponse: () => agents.markOnboard(apId) }),
  });
  /**
   * Logs an agent in. No limit applies to a correct credential that the service generated: 256 random bits cannot be guessed, and other
   * clients must not be able to lock the agent out. A wrong one is limited, and takes as long as a wrong password of any other agent.
   */
  const asAgent = async (apId: string, password: string, limit: Limit): Promise<Grant | undefined> => {
    const agent = await agents.find(apId);
    const isGenerated = agent?.credentialKind === "hmac";
    if (isGenerated && (await secretHasher.verify(agent.credential, password))) return grantAgent(agent);
    const hash = agent === undefined || isGenerated ? DUMMY_HASH : agent.credential;
    return await limit(async () => {
      const matches = await passwords.verify(hash, password);
      return agent !== undefined && matches ? grantAgent(agent) : undefined;
    });
  };

  const matchesApp = async (app: AppRow | undefined, apiKey: string): Promise<boolean> =>
    await timingSafeEqual(app === undefined ? "" : await apiKeys.open(app.sealedApiKey, app.id), apiKey);
  const asApp = async (appName: string, apiKey: string): Promise<Grant | undefined> => {
    const app = await apps.find(appName);
    const matches = await matchesApp(app, apiKey);
    if (app === undefined || !matches) return undefined;
    const scopes = scopesOfApp(app.permissions, app.grants);
    return { sub: appName, login_type: "third_party_app", roles: [], ver: app.version, scopes };
  };

  const logInAs = {
    user: (name: string, password: string, limit: Limit) => limit(() => asUser(name, password)),
    agent: asAgent,
    third_party_app: (name: string, apiKey: string, limit: Limit) => limit(() => asApp(name, apiKey)),
  } as const;

  return async (loginType, { username, password, scope }, origin) => {
    const name = loginType === "user" ? username.trim().toLowerCase() : username;
    const limits = failureLimits(loginType, name, origin);
    const grant = await logInAs[loginType](name, password, (attempt) => rateLimiter.limitFailures(limits, attempt));
    if (grant === undefined) {
      log.warn("login failed", {
        request_id: origin.requestId,
        login_type: loginType,
        name: NAMES[loginType].safeParse(name).data,
      });
      throw new NotAuthenticated("Incorrect username or password");
    }
    const { scopes, afterResponse = async () => {}, ...claims } = grant;
    const access_token = await tokens.issue({ ...claims, scope: narrow(scopes, scope) });
    return { token: { access_token, token_type: "bearer", expires_in: tokens.lifetimeSeconds }, afterResponse };
  };
}

/** Returns the requested scopes that are granted. An empty request means all granted scopes. */
function narrow(granted: readonly string[], requestedScope: string): string {
  const requested = new Set(requestedScope.split(/\s+/).filter((scope) => scope !== ""));
  return granted.filter((scope) => requested.size === 0 || requested.has(scope)).join(" ");
}
