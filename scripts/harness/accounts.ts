import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agents, users } from "../../src/accounts/account-tables.ts";
import { type Role, SCOPES_OF_AGENT, scopesOfRoles } from "../../src/auth/roles.ts";
import { createSecretHasher, randomSecret } from "../../src/auth/secrets.ts";
import { createTokens } from "../../src/auth/tokens.ts";
import { parseEnv } from "../../src/env.ts";
import { settingsOfUrl } from "../../src/programs/stack/components/clickhouse-access.ts";
import { createDatabase } from "../../src/storage/libsql.ts";

/** Accounts put straight into the database of a product that runs here, many at once, with tokens of its own keys. */

export interface TrialAgent {
  apId: string;
  token: string;
}

export interface TrialUser {
  username: string;
  version: number;
  token: string;
}

const ROWS_PER_INSERT = 500;
const TOKEN_LIFETIME_S = 86_400;

export async function makeAgents(
  dataDir: string,
  prefix: string,
  count: number,
  configurationOf: (index: number) => Record<string, unknown> = () => ({}),
): Promise<TrialAgent[]> {
  const { config, database, tokens } = productIn(dataDir);
  const credential = await createSecretHasher(config.CREDENTIAL_PEPPER).hash(randomSecret());
  const createdAt = new Date();
  const rows = Array.from({ length: count }, (_, i) => ({
    id: crypto.randomUUID(),
    apId: `${prefix}-${i}`,
    credentialKind: "hmac" as const,
    credential,
    configuration: configurationOf(i),
    version: createdAt.getTime(),
    createdAt,
  }));
  for (let i = 0; i < rows.length; i += ROWS_PER_INSERT) {
    await database.insert(agents).values(rows.slice(i, i + ROWS_PER_INSERT));
  }
  const scope = SCOPES_OF_AGENT.join(" ");
  return await Promise.all(
    rows.map(async ({ apId, version }) => ({
      apId,
      token: await tokens.issue({ sub: apId, login_type: "agent", roles: [], scope, ver: version }),
    })),
  );
}

/** One who cannot log in, unless there is the hash of a password: the token is all there is. */
export async function makeUser(
  dataDir: string,
  username: string,
  passwordHash = "none",
  roles: Role[] = ["user"],
): Promise<TrialUser> {
  const { database, tokens } = productIn(dataDir);
  const createdAt = new Date();
  const version = createdAt.getTime();
  await database.insert(users).values({ id: crypto.randomUUID(), username, passwordHash, roles, version, createdAt });
  const scope = scopesOfRoles(roles).join(" ");
  const token = await tokens.issue({ sub: username, login_type: "user", roles, scope, ver: version });
  return { username, version, token };
}

/** A token of an administrator's account that has ended an hour ago. */
export const endedToken = (dataDir: string, username: string): Promise<string> =>
  tokenEnding(dataDir, { username, version: 0 }, -3_600, ["admin"]);

/** A token of the account's that ends so long from now; a negative number: ago. */
export async function tokenEnding(
  dataDir: string,
  { username, version }: Pick<TrialUser, "username" | "version">,
  inSeconds: number,
  roles: Role[] = ["user"],
): Promise<string> {
  const { config } = productIn(dataDir);
  const tokens = createTokens({
    keys: config.JWT_KEYS,
    issuer: config.JWT_ISSUER,
    lifetimeSeconds: TOKEN_LIFETIME_S,
    now: () => new Date(Date.now() + (inSeconds - TOKEN_LIFETIME_S) * 1000),
  });
  const scope = scopesOfRoles(roles).join(" ");
  return await tokens.issue({ sub: username, login_type: "user", roles, scope, ver: version });
}

function productIn(dataDir: string) {
  const read = (file: string): Record<string, unknown> => JSON.parse(readFileSync(join(dataDir, file), "utf8"));
  const { JWT_KEYS, ...secrets } = read("secrets.json");
  const { urls } = read("stack.json") as { urls: Record<string, string> };
  const config = parseEnv({
    ...secrets,
    JWT_KEYS: JSON.stringify(JWT_KEYS),
    LIBSQL_URL: urls.libsql,
    ...settingsOfUrl(urls.clickhouse ?? ""),
    MQTT_URL: urls.mqtt,
  });
  return {
    config,
    database: createDatabase({ url: config.LIBSQL_URL }),
    tokens: createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: TOKEN_LIFETIME_S }),
  };
}
