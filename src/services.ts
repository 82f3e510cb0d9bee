import { createDatabase } from "./accounts/database.ts";
import { createUserStore } from "./accounts/user-store.ts";
import { createUsers, type Users } from "./accounts/users.ts";
import { createLogin, type Login } from "./auth/login.ts";
import { createSessions, type Sessions } from "./auth/sessions.ts";
import { createTokens, type Tokens } from "./auth/tokens.ts";
import { probeBroker } from "./broker/probe.ts";
import type { Config } from "./env.ts";
import { createHealth, type Health } from "./health.ts";
import { createTelemetry } from "./telemetry/clickhouse.ts";

/** Everything the routes need, wired in one place. */
export interface Services {
  corsOrigins: string[];
  health: Health;
  login: Login;
  sessions: Sessions;
  tokens: Tokens;
  users: Users;
}

export function createServices(config: Config): Services {
  const userStore = createUserStore(createDatabase({ url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN }));
  const telemetry = createTelemetry({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
  });
  const tokens = createTokens({
    keys: config.JWT_KEYS,
    issuer: config.JWT_ISSUER,
    lifetimeSeconds: config.TOKEN_LIFETIME_SECONDS,
  });
  return {
    corsOrigins: config.CORS_ORIGINS,
    health: createHealth({
      libsql: () => userStore.ping(),
      clickhouse: () => telemetry.ping(),
      broker: (signal) => probeBroker(config.MQTT_URL, signal),
    }),
    login: createLogin(userStore, tokens),
    sessions: createSessions(tokens, userStore),
    tokens,
    users: createUsers(userStore),
  };
}
