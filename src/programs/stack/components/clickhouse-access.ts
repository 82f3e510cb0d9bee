import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { randomSecret } from "../../../auth/secrets.ts";
import { writeFileAtomically } from "../../shared/system.ts";

/** The logins and rights of the local ClickHouse. Every process and every web page on this machine can reach its port. */

export interface ClickHouseLogin {
  user: string;
  password: string;
}

export interface ClickHouseAccess {
  /** Creates and changes tables: for migrations, backup, restore and measurements. */
  owner: ClickHouseLogin;
  /** Reads and inserts. */
  worker: ClickHouseLogin;
}

/** Generates passwords for one run of the server. A restart of its process keeps them. */
export const newClickHouseAccess = (): ClickHouseAccess => ({
  owner: { user: OWNER, password: randomSecret() },
  worker: { user: WORKER, password: randomSecret() },
});

export const OWNER = "owner";
export const WORKER = "worker";

/** Returns the settings of a login as the Worker and the scripts read them. */
export const loginSettings = ({ user, password }: ClickHouseLogin) => ({
  CLICKHOUSE_USER: user,
  CLICKHOUSE_PASSWORD: password,
});
export const clickhouseSettings = (url: string, login: ClickHouseLogin) => ({
  CLICKHOUSE_URL: url,
  ...loginSettings(login),
});

/** Adds a login to a URL, for the record of the running components (`stack.json`). */
export function withLogin(url: string, { user, password }: ClickHouseLogin): string {
  const complete = new URL(url);
  complete.username = user;
  complete.password = password;
  return complete.href;
}

/** Returns the settings for a URL of that record. A URL without a login belongs to an external server. */
export function settingsOfUrl(recorded: string): Partial<ReturnType<typeof clickhouseSettings>> {
  if (recorded.includes(",")) return { CLICKHOUSE_URL: recorded };
  const url = new URL(recorded);
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  if (user === "") return { CLICKHOUSE_URL: recorded };
  url.username = "";
  url.password = "";
  return clickhouseSettings(url.href, { user, password });
}

/** A cluster of shards without replicas. */
export interface ClickHouseCluster {
  name: string;
  /** The native addresses of all nodes, one for each shard. */
  nodes: readonly NativeAddress[];
  /** The index of this node. */
  node: number;
  /** With it, the nodes accept each other's queries on behalf of any user. */
  secret: string;
}

export interface NativeAddress {
  host: string;
  port: number;
}

export const LOOPBACK = "127.0.0.1";

/** Writes the server's configuration, readable only by its owner. Returns the path of the main file. */
export function writeClickHouseConfig(
  folder: string,
  access: ClickHouseAccess,
  databases: readonly string[],
  { host = LOOPBACK, cluster }: Listening = {},
): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const usersFile = join(folder, "users.xml");
  const mainFile = join(folder, "config.xml");
  writeFileAtomically(usersFile, usersConfig(access, databases, host, cluster !== undefined));
  writeFileAtomically(mainFile, mainConfig(usersFile, access, cluster));
  return mainFile;
}

/** Where a server listens. */
export interface Listening {
  /** Default: other machines cannot connect. */
  host?: string | undefined;
  /** The cluster that the server is a node of. */
  cluster?: ClickHouseCluster | undefined;
}

/**
 * The only URL handler is for requests with our logins. The server responds with 404 to all others: no /play page, no status pages, no
 * preflight requests. The handler compares the Authorization header up to the last whole Base64 group of the user name, so the password
 * is not part of the pattern.
 */
function mainConfig(usersFile: string, { owner, worker }: ClickHouseAccess, cluster?: ClickHouseCluster): string {
  const logins = [owner, worker].map(({ user }) => {
    const name = Buffer.from(`${user}:`);
    return name.subarray(0, name.length - (name.length % 3)).toString("base64");
  });
  return `<clickhouse>
  <users_config>${escaped(usersFile)}</users_config>
  ${cluster === undefined ? "" : clusterConfig(cluster)}
  <access_control_improvements>
    <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
    <select_from_information_schema_requires_grant>true</select_from_information_schema_requires_grant>
    <table_engines_require_grant>true</table_engines_require_grant>
    <on_cluster_queries_require_cluster_grant>true</on_cluster_queries_require_cluster_grant>
  </access_control_improvements>
  <http_handlers>
    <rule>
      <headers><Authorization>regex:^Basic (${logins.map(escapedPattern).join("|")}).*$</Authorization></headers>
      <handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>
    </rule>
  </http_handlers>
</clickhouse>
`;
}

const clusterConfig = ({
  name,
  nodes,
  node,
  secret,
}: ClickHouseCluster): string => `<tcp_port>${nodes[node]?.port}</tcp_port>
  <macros><shard>${node + 1}</shard><replica>1</replica></macros>
  <remote_servers>
    <${name}>
      <secret>${escaped(secret)}</secret>
      ${nodes.map(({ host, port }) => `<shard><replica><host>${escaped(host)}</host><port>${port}</port></replica></shard>`).join("\n      ")}
    </${name}>
  </remote_servers>`;

/** The rights that migrations, backup and restore need. */
const OWNER_RIGHTS =
  "SELECT, INSERT, ALTER TABLE, ALTER VIEW, CREATE DATABASE, CREATE TABLE, CREATE VIEW, DROP TABLE, DROP VIEW, TRUNCATE";
const ENGINES = ["MergeTree", "ReplacingMergeTree", "AggregatingMergeTree", "Null"];
/** System tables with the state of the server. Measurements read more of them than the Worker does. */
const WORKER_SYSTEM_TABLES = ["disks"];
const OWNER_SYSTEM_TABLES = ["disks", "merges", "parts", "processes", "tables"];

function usersConfig(
  { owner, worker }: ClickHouseAccess,
  databases: readonly string[],
  host: string,
  isClustered: boolean,
): string {
  const network = host === LOOPBACK ? LOOPBACK : "::/0";
  const on = (rights: string) => databases.map((database) => `${rights} ON ${database}.*`);
  const selectFrom = (tables: readonly string[]) => tables.map((table) => `SELECT ON system.${table}`);
  // The server's own session belongs to the user `default`, without a password, from the loopback address. This cannot be changed. So this
  // user may have one session only, which is in use before the server listens, and it may only listen and wait.
  return `<clickhouse>
  <profiles>
    <default></default>
    <one_session><max_sessions_for_user>1</max_sessions_for_user></one_session>
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <default>
      <no_password/>
      <profile>one_session</profile>
      ${limits(["SYSTEM LISTEN ON *.*", "SELECT ON system.numbers"], LOOPBACK)}
    </default>
    ${account(
      owner,
      [
        ...on(isClustered ? `${OWNER_RIGHTS}, DROP DATABASE` : OWNER_RIGHTS),
        ...[...ENGINES, ...(isClustered ? ["Distributed"] : [])].map((engine) => `TABLE ENGINE ON ${engine}`),
        ...selectFrom([...OWNER_SYSTEM_TABLES, ...(isClustered ? ["clusters"] : [])]),
      ],
      network,
    )}
    ${account(worker, [...on("SELECT, INSERT"), ...selectFrom(WORKER_SYSTEM_TABLES)], network)}
  </users>
</clickhouse>
`;
}

/** A generated password has 256 random bits, so a fast hash is as safe as a slow one. */
const account = ({ user, password }: ClickHouseLogin, rights: readonly string[], network: string): string => `<${user}>
      <password_sha256_hex>${createHash("sha256").update(password).digest("hex")}</password_sha256_hex>
      <profile>default</profile>
      ${limits(rights, network)}
    </${user}>`;

const limits = (rights: readonly string[], network: string): string => `<quota>default</quota>
      <networks><ip>${network}</ip></networks>
      <grants>
        ${rights.map((right) => `<query>GRANT ${right}</query>`).join("\n        ")}
      </grants>`;

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const escapedPattern = (text: string): string => text.replaceAll("+", "\\+");
