import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agents, users } from "../../src/accounts/account-tables.ts";
import { type Role, SCOPES_OF_AGENT, scopesOfUser } from "../../src/auth/roles.ts";
import { createSecretHasher, randomSecret } from "../../src/auth/secrets.ts";
import { createTokens } from "../../src/auth/tokens.ts";
import { parseEnv } from "../../src/env.ts";
import { settingsOfUrl } from "../../src/programs/stack/components/clickhouse-access.ts";
import { createDatabase } from "../../src/storage/libsql.ts";

/** Writes accounts directly into the database of a local product, and issues tokens with its keys. */

export interface TestAgent {
  apId: string;
  token: string;
}

export interface TestUser {
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
): Promise<TestAgent[]> {
  const { config, database, tokens } = openProduct(dataDir);
  const credential = await createSecretHasher(config.CREDENTIAL_PEPPER).hash(randomSecret());
  const createdAt = new Date();
  const version = createdAt.getTime();
  const account = { credentialKind: "hmac" as const, credential, version, createdAt };
  const rows = Array.from({ length: count }, (_, i) => {
    return { id: crypto.randomUUID(), apId: `${prefix}-${i}`, configuration: configurationOf(i), ...account };
  });
  for (let i = 0; i < rows.length; i += ROWS_PER_INSERT) {
    await database.insert(agents).values(rows.slice(i, i + ROWS_PER_INSERT));
  }
  const scope = SCOPES_OF_AGENT.join(" ");
  const issue = (apId: string) => tokens.issue({ sub: apId, login_type: "agent", roles: [], scope, ver: version });
  return await Promise.all(rows.map(async ({ apId }) => ({ apId, token: await issue(apId) })));
}

/** Creates a user with a token. The user can log in only if a password hash is given. */
export async function makeUser(dataDir: string, username: string, passwordHash = "none", roles: Role[] = ["user"]) {
  const createdAt = new Date();
  const version = createdAt.getTime();
  const { database } = openProduct(dataDir);
  await database.insert(users).values({ id: crypto.randomUUID(), username, passwordHash, roles, version, createdAt });
  return { username, version, token: await tokenEnding(dataDir, { username, version }, TOKEN_LIFETIME_S, roles) };
}

/** Returns a token of an administrator that expired an hour ago. */
export const endedToken = (dataDir: string, username: string): Promise<string> =>
  tokenEnding(dataDir, { username, version: 0 }, -3_600, ["admin"]);

/** Returns a token that expires after some seconds; a negative number means that it has expired. */
export async function tokenEnding(
  dataDir: string,
  { username, version }: Pick<TestUser, "username" | "version">,
  inSeconds: number,
  roles: Role[] = ["user"],
): Promise<string> {
  const { tokens } = openProduct(dataDir, () => new Date(Date.now() + (inSeconds - TOKEN_LIFETIME_S) * 1000));
  const scope = scopesOfUser(roles).join(" ");
  return await tokens.issue({ sub: username, login_type: "user", roles, scope, ver: version });
}

function openProduct(dataDir: string, now = () => new Date()) {
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
  const { JWT_KEYS: keys, JWT_ISSUER: issuer, LIBSQL_URL: url } = config;
  const tokens = createTokens({ keys, issuer, lifetimeSeconds: TOKEN_LIFETIME_S, now });
  return { config, database: createDatabase({ url }), tokens };
}
