import { DUMMY_HASH, type Passwords } from "../auth/passwords.ts";
import { SCOPES_OF_AGENT, scopesOfApp, scopesOfRoles } from "../auth/permissions.ts";
import type { Sealing } from "../auth/sealing.ts";
import { type GeneratedSecrets, isSame } from "../auth/secrets.ts";
import type { Claims, LoginType, Tokens } from "../auth/tokens.ts";
import { NotAuthenticated } from "../errors.ts";
import { log } from "../log.ts";
import { Email, Identifier } from "../schemas/primitives.ts";
import type { LoginForm, Token } from "../schemas/token.ts";
import type { AgentRow, AgentStore } from "./agent-store.ts";
import type { AppRow, AppStore } from "./app-store.ts";
import type { Attempts } from "./attempts.ts";
import type { UserStore } from "./user-store.ts";

/** Trades credentials for a token. `afterwards` is what need not keep the caller waiting; run it once the answer is out. */
export type Login = (
  loginType: LoginType,
  form: LoginForm,
  requestId: string,
) => Promise<{ token: Token; afterwards: () => Promise<void> }>;

export interface LoginOptions {
  users: UserStore;
  agents: AgentStore;
  apps: AppStore;
  attempts: Attempts;
  passwords: Passwords;
  generatedSecrets: GeneratedSecrets;
  apiKeys: Sealing;
  tokens: Tokens;
}

const MAX_FAILURES_PER_MINUTE = 10;

/** What can be a name. Anything else is not written down: people type passwords there by mistake. */
const NAMES = { user: Email, agent: Identifier, third_party_app: Identifier } as const;

/** What the token of an account says, all scopes that it grants included; nothing where the credentials do not match. */
type Grant = Omit<Claims, "scope"> & { scopes: readonly string[]; afterwards?: () => Promise<void> };

export function createLogin(options: LoginOptions): Login {
  const { users, agents, apps, attempts, passwords, generatedSecrets, apiKeys, tokens } = options;

  const asUser = async (name: string, password: string): Promise<Grant | undefined> => {
    const user = await users.find(name);
    // An unknown account is checked as well, against a hash that nothing matches, so that the time taken says nothing.
    const matches = await passwords.verify(user?.passwordHash ?? DUMMY_HASH, password);
    if (user === undefined || !matches) return undefined;
    return { sub: name, login_type: "user", roles: user.roles, ver: user.version, scopes: scopesOfRoles(user.roles) };
  };

  const matchesAgent = async (agent: AgentRow | undefined, password: string): Promise<boolean> => {
    if (agent === undefined) return await passwords.verify(DUMMY_HASH, password);
    switch (agent.credentialKind) {
      case "argon2id":
        return await passwords.verify(agent.credential, password);
      case "hmac":
        // A wrong one takes as long as with any other agent; what is right may be quick.
        return (
          (await generatedSecrets.verify(agent.credential, password)) || (await passwords.verify(DUMMY_HASH, password))
        );
    }
  };
  const asAgent = async (apId: string, password: string): Promise<Grant | undefined> => {
    const agent = await agents.find(apId);
    const matches = await matchesAgent(agent, password);
    if (agent === undefined || !matches) return undefined;
    return {
      sub: apId,
      login_type: "agent",
      roles: [],
      ver: agent.version,
      scopes: SCOPES_OF_AGENT,
      // If it comes to nothing, the next login makes up for it.
      ...(!agent.onboard && { afterwards: () => agents.markOnboard(apId) }),
    };
  };

  const matchesApp = async (app: AppRow | undefined, apiKey: string): Promise<boolean> =>
    await isSame(app === undefined ? "" : await apiKeys.open(app.sealedApiKey, app.id), apiKey);
  const asApp = async (appName: string, apiKey: string): Promise<Grant | undefined> => {
    const app = await apps.find(appName);
    const matches = await matchesApp(app, apiKey);
    if (app === undefined || !matches) return undefined;
    const scopes = scopesOfApp(app.permissions);
    return { sub: appName, login_type: "third_party_app", roles: [], ver: app.version, scopes };
  };

  const ways = { user: asUser, agent: asAgent, third_party_app: asApp } as const;

  return async (loginType, { username, password, scope }, requestId) => {
    const name = loginType === "user" ? username.trim().toLowerCase() : username;
    const key = `login:${loginType}:${name}`;
    const grant = await attempts.limitFailures(key, MAX_FAILURES_PER_MINUTE, () => ways[loginType](name, password));
    if (grant === undefined) {
      log.warn("login failed", {
        request_id: requestId,
        login_type: loginType,
        name: NAMES[loginType].safeParse(name).data,
      });
      throw new NotAuthenticated("Incorrect username or password");
    }
    const { scopes, afterwards = async () => {}, ...claims } = grant;
    const access_token = await tokens.issue({ ...claims, scope: narrow(scopes, scope) });
    return { token: { access_token, token_type: "bearer", expires_in: tokens.lifetimeSeconds }, afterwards };
  };
}

/** What of the granted scopes was asked for; nothing asked for means all, and what is not granted is left out. */
function narrow(granted: readonly string[], asked: string): string {
  const wanted = new Set(asked.split(/\s+/).filter((scope) => scope !== ""));
  return granted.filter((scope) => wanted.size === 0 || wanted.has(scope)).join(" ");
}
