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
import { backUp } from "../../scripts/ops/backup/back-up.ts";
import { restore } from "../../scripts/ops/backup/restore.ts";
import { createAgentStore } from "../../src/accounts/agents/agent-store.ts";
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
import { migrateAccounts } from "../../src/programs/stack/migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { loadSecrets, type Secrets } from "../../src/programs/stack/stack-secrets.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import {
  API_KEY,
  accountsOf,
  BUSY,
  count,
  fillAccounts,
  fillTelemetry,
  GENERATED,
  keepBusy,
  PASSWORD,
  telemetryOf,
} from "../support/filled-stores.ts";

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
  await Promise.all([fillAccounts(source, secrets), fillTelemetry(source)]);
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const { signal } = new AbortController();
const secretsFile = join(dataDir, "secrets.json");
const backUpTo = (to: string, config = source) => backUp({ config, secretsFile }, to, { withSecrets: true, signal });
const restoreFrom = (from: string, options = {}) =>
  restore({ config: target, secretsFile }, from, { ...options, signal });

describe("a backup", () => {
  let restored: Record<string, string>;

  it("restores every row that was written before it started, even if writes continue during the backup", async () => {
    const { busy, ended } = keepBusy(source);
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
    expect(await createEncryptor([secrets.ENCRYPTION_KEY]).open(app?.sealedApiKey ?? "", app?.id ?? "")).toBe(API_KEY);
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
  CLICKHOUSE_URL: CLICKHOUSE_URL.join(),
  CLICKHOUSE_USER,
  CLICKHOUSE_PASSWORD,
});
