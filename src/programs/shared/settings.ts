import { isIP } from "node:net";
import { resolve } from "node:path";
import { Email } from "../../schemas/primitives.ts";
import { UserError } from "./cli.ts";

/** The settings of the stack, from the environment. docs/settings.md lists them. */
export interface Settings {
  host: string;
  port: WantedPort;
  mqttPort: WantedPort;
  mqttWsPort: WantedPort;
  dataDir: string;
  adminUsername: string;
  adminPassword: string | undefined;
  /** Servers that already run. The stack starts its own server for each one that is undefined. */
  libsqlUrl: string | undefined;
  clickhouseUrl: string | undefined;
  mqttUrl: string | undefined;
  mailUrl: string | undefined;
  /** A ClickHouse executable, to run instead of the library from npm. */
  clickhouseBin: string | undefined;
  /** Passed to the Worker unchanged. */
  workerSettings: Record<string, string>;
}

export interface WantedPort {
  name: string;
  number: number;
  /** The user set it, so the stack must not choose another port. */
  isExplicit: boolean;
}

/** Settings that the stack itself uses. */
const STACK_SETTINGS = [
  ...["HOST", "PORT", "MQTT_PORT", "MQTT_WS_PORT", "DATA_DIR"],
  ...["ADMIN_USERNAME", "ADMIN_PASSWORD"],
  ...["LIBSQL_URL", "CLICKHOUSE_URL", "CLICKHOUSE_BIN", "MQTT_URL", "MAIL_URL"],
];

const WORKER_SETTINGS = [
  "LIBSQL_AUTH_TOKEN",
  "LIBSQL_READ_URL",
  "CLICKHOUSE_USER",
  "CLICKHOUSE_PASSWORD",
  "CLICKHOUSE_DATABASE",
  "CLICKHOUSE_CLUSTER",
  "CLICKHOUSE_SHARDS",
  "CLICKHOUSE_REPLICATION",
  "CLICKHOUSE_INSERT_QUORUM",
  "TELEMETRY_DAYS",
  "ROLLUP_DAYS",
  "AUDIT_DAYS",
  "EVENT_DAYS",
  "EMULATION_RETENTION_HOURS",
  "EMULATED_PER_ACCOUNT",
  "EMULATED_TOTAL",
  "EMULATED_KEPT_PER_ACCOUNT",
  "EMULATED_KEPT_TOTAL",
  "OPEN_JOBS_PER_ACCOUNT",
  "OPEN_JOBS_TOTAL",
  "LONG_LIVE_JOBS_PER_ACCOUNT",
  "LONG_LIVE_JOBS_TOTAL",
  "JWT_ISSUER",
  "TOKEN_LIFETIME_SECONDS",
  "AGENT_SHARDS",
  "COMMIT_GATHER_MS",
  "FLUSH_INTERVAL_MS",
  "LIVE_WINDOW_MINUTES",
  "LIVE_WINDOW_MEGABYTES",
  "LOG_REQUESTS",
  "CORS_ORIGINS",
  "MAP_TILES_URL",
  "MAP_ATTRIBUTION",
  "CLIENT_ADDRESS_HEADER",
  "PUBLIC_URL",
  "MAIL_FROM",
  "WEBHOOK_NETWORKS",
  "SIGNUP",
  "NEW_USERS",
  "SETUP_TOKEN",
  "ENROLMENT_TOKEN",
  "ENROLMENT_MAX_USES",
  "ENROLMENT_EXPIRES_AT",
  "METRICS_TOKEN",
];

/** Defaults on a single machine, if they differ from those of the Worker on Cloudflare. */
const WORKER_DEFAULTS = {
  CLIENT_ADDRESS_HEADER: "peer",
  MAIL_FROM: "controller@example.com",
  // workerd runs on one thread: more shards would only cause more and smaller inserts.
  AGENT_SHARDS: "1",
  COMMIT_GATHER_MS: "0",
  LIVE_WINDOW_MEGABYTES: "128",
};

/** All settings, by program. */
export const SETTINGS = {
  controller: [...STACK_SETTINGS, ...WORKER_SETTINGS],
  bridge: ["SERVICE_URL", "MQTT_URL", "BRIDGE_APP", "BRIDGE_KEY", "BRIDGE_SHARE", "BRIDGE_ID"],
  emulator: ["SERVICE_URL", "MQTT_URL", "EMULATOR_APP", "EMULATOR_KEY", "EMULATOR_ID", "EMULATOR_DIR"],
};

export const isSetting = (name: string): boolean => Object.values(SETTINGS).some((names) => names.includes(name));

/** Recognises a secret by the name of its variable. These URLs usually contain the key of a mail service, or a password. */
export const isSecret = (name: string): boolean =>
  /_(?:PASSWORD|TOKEN|KEYS?|PEPPER|SECRET)$/.test(name) || name === "MAIL_URL" || name === "BROKER_REDIS_URL";

/** Reads the settings. `defaults` are Worker settings whose defaults differ between `npm run dev` and `npm start`. */
export function readSettings(env: NodeJS.ProcessEnv, defaults: Record<string, string> = {}): Settings {
  const text = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  const port = (name: string, fallback: number): WantedPort => {
    const given = text(name);
    const number = given === undefined ? fallback : Number(given);
    if (!Number.isInteger(number) || number < 1 || number > 65_535) {
      throw new UserError(`${name} must be a port number from 1 to 65535, not "${given}".`);
    }
    return { name, number, isExplicit: given !== undefined };
  };
  const adminPassword = text("ADMIN_PASSWORD");
  if (adminPassword !== undefined && (adminPassword.length < 8 || adminPassword.length > 128)) {
    throw new UserError("ADMIN_PASSWORD must have 8 to 128 characters.");
  }
  const adminUsername = Email.safeParse(text("ADMIN_USERNAME") ?? "admin@example.com");
  if (!adminUsername.success) throw new UserError("ADMIN_USERNAME must be an e-mail address.");
  const host = text("HOST") ?? "127.0.0.1";
  if (isIP(host) === 0 && host !== "localhost") {
    throw new UserError(
      `HOST must be an IP address of this machine (such as 127.0.0.1, 0.0.0.0 or ::) or localhost, not "${host}".`,
    );
  }
  return {
    host,
    port: port("PORT", 8787),
    mqttPort: port("MQTT_PORT", 1883),
    mqttWsPort: port("MQTT_WS_PORT", 8083),
    dataDir: resolve(text("DATA_DIR") ?? ".data"),
    adminUsername: adminUsername.data,
    adminPassword,
    libsqlUrl: text("LIBSQL_URL"),
    clickhouseUrl: text("CLICKHOUSE_URL"),
    mqttUrl: text("MQTT_URL"),
    mailUrl: text("MAIL_URL"),
    clickhouseBin: text("CLICKHOUSE_BIN"),
    workerSettings: {
      ...WORKER_DEFAULTS,
      ...defaults,
      ...Object.fromEntries(
        WORKER_SETTINGS.flatMap((name) => {
          const value = text(name);
          return value === undefined ? [] : [[name, value]];
        }),
      ),
    },
  };
}
