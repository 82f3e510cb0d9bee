import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@libsql/client/http";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { backUp } from "../../scripts/ops/backup/back-up.ts";
import { execute, queryRows } from "../../scripts/ops/backup/clickhouse-http.ts";
import { restore } from "../../scripts/ops/backup/restore.ts";
import { createAgentStore } from "../../src/accounts/agent-store.ts";
import { createAppStore } from "../../src/accounts/app-store.ts";
import { createLogin } from "../../src/accounts/login/login.ts";
import { createRateLimiter } from "../../src/accounts/login/rate-limiter.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { createEncryptor } from "../../src/auth/encryptor.ts";
import { createSecretHasher } from "../../src/auth/secrets.ts";
import { createTokens } from "../../src/auth/tokens.ts";
import { parseEnv, parseStoresEnv, type StoresConfig } from "../../src/env.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import { clickhouseSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { migrateAccounts, migrateTelemetry } from "../../src/programs/stack/migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { loadSecrets, type Secrets } from "../../src/programs/stack/stack-secrets.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";

const PASSWORD = `${SECRET_MARK} long enough`;
const API_KEY = `${SECRET_MARK}-api-key-of-an-app`;
const GENERATED = `${SECRET_MARK}-generated`;
const ACTOR = { kind: "console", name: "test", requestId: "r-1" } as const;
/** Prefix of the agents that report during the backup. The data of all others does not change. */
const BUSY = "busy";

const folder = mkdtempSync(join(tmpdir(), "controller-backup-"));
const dataDir = join(folder, "data");
const backup = join(folder, "backup");
const supervisor = new Supervisor();
let secrets: Secrets;
let source: StoresConfig;
let target: StoresConfig;

beforeAll(async () => {
  const [sourcePort, targetPort] = await Promise.all([anyFreePort(), anyFreePort()]);
  await Promise.all([
    supervisor.start({ ...sqldComponent(join(folder, "source"), sourcePort), name: "sqld" }),
    supervisor.start({ ...sqldComponent(join(folder, "target"), targetPort), name: "sqld of the restore" }),
  ]);
  const clickhouse = clickhouseSettings(inject("clickhouseUrl"), inject("clickhouseAccess").owner);
  source = parseStoresEnv({
    ...{ ...clickhouse, LIBSQL_URL: `http://127.0.0.1:${sourcePort}` },
    CLICKHOUSE_DATABASE: "backed_up",
  });
  target = parseStoresEnv({
    ...{ ...clickhouse, LIBSQL_URL: `http://127.0.0.1:${targetPort}` },
    CLICKHOUSE_DATABASE: "restored",
    // Some rows of the backup are older than this.
    TELEMETRY_DAYS: "1",
  });
  mkdirSync(dataDir);
  secrets = await loadSecrets(dataDir);
  await Promise.all([migrateAccounts(source), migrateTelemetry(source)]);
  await Promise.all([fillAccounts(), fillTelemetry()]);
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const encryptor = () => createEncryptor([secrets.ENCRYPTION_KEY]);

async function fillAccounts(): Promise<void> {
  const database = createDatabase({ url: source.LIBSQL_URL });
  const passwordHash = await nativePasswords.hash(PASSWORD);
  const users = createUserStore(database);
  for (const roles of [["admin"], ["user"]] as ("admin" | "user")[][])
    await users.insert({ username: `${roles[0]}@example.com`, passwordHash, roles }, ACTOR);
  const agents = createAgentStore(database);
  const configuration = { note: "tab\t, line\n, quote ' and \" and ünïcödé 🔑", nested: { n: 1.5, none: null } };
  await agents.insert({ apId: "chosen", credentialKind: "argon2id", credential: passwordHash, configuration }, ACTOR);
  const credential = await createSecretHasher([secrets.CREDENTIAL_PEPPER]).hash(GENERATED);
  const id = crypto.randomUUID();
  const sealedApiKey = await encryptor().seal(API_KEY, id);
  const permissions = { agents: true, data: false, commands: false, emulator: false };
  await createAppStore(database).insert({ id, appName: "an app", sealedApiKey, permissions }, ACTOR);
  const client = createClient({ url: source.LIBSQL_URL });
  await client.batch([
    // More rows than one batch.
    {
      sql: `WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1100)
        INSERT INTO agents (id, ap_id, credential_kind, credential, configuration, onboard, version, created_at)
        SELECT 'id-' || n, 'made-' || n, 'hmac', ?, '{}', 0, n, n FROM numbers`,
      args: [credential],
    },
    "INSERT INTO reset_tokens SELECT 'hash', id, 1 FROM users LIMIT 1",
    "INSERT INTO attempts VALUES ('login:user:x', 3, 1)",
    `INSERT INTO jobs (job_number, kind, state, owner_id, owner, target, detail, messages, created_at, updated_at)
      VALUES ('j', 'command', 'queued', 'o', 'user:x', 'made-1', '{}', 0, 1, 1)`,
    "INSERT INTO emulations VALUES ('j', 'o', 'user:x', 2, 1, 2, NULL, NULL)",
    "INSERT INTO emulator_parts VALUES ('j', 1, 'running', NULL)",
    "INSERT INTO outbox (job_number, part, topic, payload, created_at, due_at, expires_at, published) VALUES ('j', 1, 't', 'p', 1, 1, 1, 0)",
    "INSERT INTO outbox (job_number, part, topic, payload, created_at, due_at, expires_at, published) VALUES ('j', 2, 't', 'p', 1, 1, 1, 0)",
    // Its id must not be assigned again, although no row contains it any more.
    "DELETE FROM outbox WHERE part = 2",
  ]);
  client.close();
}

async function fillTelemetry(): Promise<void> {
  // The same batch twice, as after a retry. ClickHouse has not merged the duplicates yet.
  for (let round = 0; round < 2; round++)
    await execute(
      source,
      `INSERT INTO samples_v1 (ap_id, ts, metrics, texts) SELECT concat('ap-', toString(number % 50)), toDateTime64('2026-01-01 00:00:00.123', 3, 'UTC') + number * 50,
         map('load', number / 3, 'odd\tname', if(number = 7, inf, -number)), map('note', concat('line\\n', toString(number)))
       FROM numbers(3000)`.replace(
        "2026-01-01 00:00:00",
        new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 19).replace("T", " "),
      ),
      { settings: { max_partitions_per_insert_block: 0 } },
    );
}

const { signal } = new AbortController();
const secretsFile = join(dataDir, "secrets.json");
const backUpTo = (to: string, config = source) => backUp({ config, secretsFile }, to, { withSecrets: true, signal });
const restoreFrom = (from: string, options = {}) =>
  restore({ config: target, secretsFile }, from, { ...options, signal });

/** Returns a hash of each table of the accounts database, without the gazetteer and the rows that busy agents write. */
async function accountsOf({ LIBSQL_URL: url }: StoresConfig): Promise<Record<string, string>> {
  const client = createClient({ url });
  const master = await client.execute(
    "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'gazetteer%' ORDER BY name",
  );
  const hashes: Record<string, string> = { schema: hashOf(master.rows.map(({ name, sql }) => [name, sql])) };
  const tables = await client.execute(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'gazetteer%'",
  );
  for (const { name } of tables.rows) {
    const { rows } = await client.execute(`SELECT * FROM "${name}"`);
    const unchanged = rows.map((row) => JSON.stringify(row)).filter((row) => !row.includes(BUSY));
    hashes[String(name)] = `${unchanged.length} ${hashOf(unchanged.sort())}`;
  }
  client.close();
  return hashes;
}

const hashOf = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex");

const Hashed = z.tuple([z.object({ n: z.coerce.number(), hash: z.string() })]);
const Counted = z.tuple([z.object({ n: z.coerce.number() })]);

async function telemetryOf(config: StoresConfig): Promise<Record<string, unknown>> {
  const hashes: Record<string, unknown> = {};
  for (const table of ["points_v1", "texts_v1", "minutes_v1", "agents_v1"]) {
    const query = `SELECT count() AS n, toString(groupBitXor(cityHash64(*))) AS hash FROM ${table} FINAL WHERE NOT startsWith(ap_id, '${BUSY}')`;
    hashes[table] = (await queryRows(config, Hashed, query))[0];
  }
  return hashes;
}

const count = async (config: StoresConfig, query: string): Promise<number> =>
  (await queryRows(config, Counted, query))[0].n;

/** Sends samples and creates accounts until `isStopped` is set. Counts the committed samples. */
function keepBusy() {
  const busy = { isStopped: false, committed: 0 };
  const agents = createAgentStore(createDatabase({ url: source.LIBSQL_URL }));
  const sending = (async () => {
    for (let i = 0; !busy.isStopped; i++) {
      await execute(
        source,
        `INSERT INTO samples_v1 (ap_id, ts, metrics, texts) SELECT '${BUSY}-${i % 5}', toDateTime64(${Date.now() + i}/1000, 3, 'UTC'), map('n', 1), map('t', 'x')`,
      );
      busy.committed++;
    }
  })();
  const changing = (async () => {
    for (let i = 0; !busy.isStopped; i++, await sleep(5))
      await agents.insert(
        { apId: `${BUSY}-${i}`, credentialKind: "hmac", credential: "none", configuration: {} },
        ACTOR,
      );
  })();
  return { busy, ended: Promise.all([sending, changing]) };
}

describe("a backup", () => {
  let restored: Record<string, string>;

  it("restores every row that was written before it started, even if writes continue during the backup", async () => {
    const { busy, ended } = keepBusy();
    await sleep(500);
    const before = busy.committed;
    await backUpTo(backup);
    busy.isStopped = true;
    await ended;
    expect(existsSync(`${backup}.partial`)).toBe(false);
    expect(statSync(join(backup, "secrets.json")).mode & 0o777).toBe(0o600);

    await restoreFrom(backup);
    const accounts = await accountsOf(source);
    restored = await accountsOf(target);
    // The last ids of busy tables are from another moment.
    expect({ ...restored, sqlite_sequence: "" }).toEqual({ ...accounts, sqlite_sequence: "" });
    expect(await telemetryOf(target)).toEqual(await telemetryOf(source));

    const busyPoints = `FROM points_v1 FINAL WHERE startsWith(ap_id, '${BUSY}')`;
    const [kept, all] = [
      await count(target, `SELECT count() AS n ${busyPoints}`),
      await count(source, `SELECT count() AS n ${busyPoints}`),
    ];
    expect(kept).toBeGreaterThanOrEqual(before);
    expect(kept).toBeLessThanOrEqual(all);
    expect(await count(target, `SELECT sum(n) AS n FROM minutes_v1 WHERE startsWith(ap_id, '${BUSY}')`)).toBe(kept);
    expect(await count(target, "SELECT sum(n) AS n FROM network_minutes_v1")).toBe(
      await count(target, "SELECT sum(n) AS n FROM minutes_v1"),
    );
  });

  it("assigns no id of the outbox twice after a restore", async () => {
    const client = createClient({ url: target.LIBSQL_URL });
    const insert =
      "INSERT INTO outbox (job_number, part, topic, payload, created_at, due_at, expires_at, published) VALUES ('k', 1, 't', 'p', 1, 1, 1, 0) RETURNING id";
    expect((await client.execute(insert)).rows[0]?.id).toBe(3);
    client.close();
  });

  it("lets every account log in after a restore, and keeps the API keys of apps", async () => {
    const { JWT_KEYS, ...rest } = secrets;
    const config = parseEnv({
      ...rest,
      ...envOf(target),
      JWT_KEYS: JSON.stringify(JWT_KEYS),
      MQTT_URL: "ws://127.0.0.1:1",
    });
    const database = createDatabase({ url: target.LIBSQL_URL });
    const apps = createAppStore(database);
    const login = createLogin({
      users: createUserStore(database),
      agents: createAgentStore(database),
      apps,
      rateLimiter: createRateLimiter(database),
      passwords: nativePasswords,
      secretHasher: createSecretHasher(config.CREDENTIAL_PEPPER),
      apiKeys: createEncryptor(config.ENCRYPTION_KEY),
      tokens: createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: 60 }),
    });
    const origin = { requestId: "request", address: "192.0.2.1" };
    for (const [type, username, password] of [
      ["user", "admin@example.com", PASSWORD],
      ["user", "user@example.com", PASSWORD],
      ["agent", "chosen", PASSWORD],
      ["agent", "made-1099", GENERATED],
      ["third_party_app", "an app", API_KEY],
    ] as const)
      expect((await login(type, { username, password, scope: "" }, origin)).token.token_type).toBe("bearer");
    const app = await apps.find("an app");
    expect(await encryptor().open(app?.sealedApiKey ?? "", app?.id ?? "")).toBe(API_KEY);
  });

  it("is rejected if a file is damaged, before the restore changes anything", async () => {
    const before = await telemetryOf(target);
    const file = join("telemetry", readdirSync(join(backup, "telemetry"))[0] ?? "");
    for (const [name, damage] of [
      [file, (bytes: Buffer) => bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] ?? 0) ^ 1)],
      [join("accounts", "users.ndjson.zst"), (bytes: Buffer) => bytes.subarray(0, -1)],
      ["secrets.json", (bytes: Buffer) => Buffer.concat([bytes, Buffer.from(" ")])],
    ] as const) {
      const damaged = join(folder, "damaged");
      cpSync(backup, damaged, { recursive: true });
      writeFileSync(join(damaged, name), damage(readFileSync(join(damaged, name))));
      await expect(restoreFrom(damaged, { replace: true })).rejects.toThrow(`damaged: ${name}`);
      rmSync(damaged, { recursive: true });
    }
    expect(await telemetryOf(target)).toEqual(before);
  });

  it.each([
    ["table", "points_v1; DROP TABLE texts_v1"],
    ["columns", ["ts) SELECT 1 --"]],
    ["file", "../../elsewhere.zst"],
  ])("is rejected if its manifest contains an unsafe name (%s)", async (field, name) => {
    const unsafe = join(folder, "unsafe");
    cpSync(backup, unsafe, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(unsafe, "manifest.json"), "utf8"));
    manifest.telemetry.tables[0][field] = name;
    writeFileSync(join(unsafe, "manifest.json"), JSON.stringify(manifest));
    await expect(restoreFrom(unsafe, { replace: true })).rejects.toThrow(
      /is not a plain name|is not a path within the backup/,
    );
    rmSync(unsafe, { recursive: true });
  });

  it.each([
    ["accounts", (manifest: { accounts: { migrations: unknown[] } }) => manifest.accounts.migrations.push("later")],
    [
      "telemetry",
      (manifest: { telemetry: { migrations: unknown[] } }) =>
        manifest.telemetry.migrations.push({ name: "9999_later.sql", hash: "later" }),
    ],
  ])("is rejected if a later version made it (%s)", async (_, change) => {
    const later = join(folder, "later");
    cpSync(backup, later, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(later, "manifest.json"), "utf8"));
    change(manifest);
    writeFileSync(join(later, "manifest.json"), JSON.stringify(manifest));
    await expect(restoreFrom(later, { replace: true })).rejects.toThrow("that this version does not know");
    rmSync(later, { recursive: true });
  });

  it("replaces data only with --replace, and blocks migrations after an interrupted restore", async () => {
    await expect(restoreFrom(backup)).rejects.toThrow("The stores are not empty");
    const broken = join(folder, "broken");
    cpSync(backup, broken, { recursive: true });
    // The manifest says one row more. The restore notices after it has loaded this table, the first of all.
    const manifest = JSON.parse(readFileSync(join(broken, "manifest.json"), "utf8"));
    manifest.telemetry.tables[0].rows++;
    writeFileSync(join(broken, "manifest.json"), JSON.stringify(manifest));
    await expect(restoreFrom(broken, { replace: true })).rejects.toThrow(
      /agents_v1 has \d+ rows after the restore, but/,
    );
    await expect(migrateAccounts(target)).rejects.toThrow("A restore into these stores was interrupted");
    await expect(restoreFrom(backup)).rejects.toThrow("The stores are not empty");
    await restoreFrom(backup, { replace: true, withSecrets: true });
    await migrateAccounts(target);
    expect(await accountsOf(target)).toEqual(restored);
    expect(await telemetryOf(target)).toEqual(await telemetryOf(source));
  });

  it("neither overwrites another backup nor backs up a missing database", async () => {
    await expect(backUpTo(backup)).rejects.toThrow("already exists");
    const missing = { ...source, CLICKHOUSE_DATABASE: "missing" };
    await expect(backUpTo(join(folder, "none"), missing)).rejects.toThrow("ClickHouse rejected a query");
    expect(readdirSync(folder).filter((name) => name.startsWith("none"))).toEqual([]);
  });
});

const envOf = ({ LIBSQL_URL, CLICKHOUSE_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD }: StoresConfig) => ({
  LIBSQL_URL,
  CLICKHOUSE_URL,
  CLICKHOUSE_USER,
  CLICKHOUSE_PASSWORD,
});
