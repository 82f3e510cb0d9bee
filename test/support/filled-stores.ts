import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@libsql/client/http";
import * as z from "zod";
import { execute, queryRows } from "../../scripts/ops/backup/clickhouse-http.ts";
import { createAgentStore } from "../../src/accounts/agents/agent-store.ts";
import { createAppStore } from "../../src/accounts/app-store.ts";
import { createUserStore } from "../../src/accounts/user-store.ts";
import { createEncryptor } from "../../src/auth/encryptor.ts";
import { createSecretHasher } from "../../src/auth/secrets.ts";
import type { StoresConfig } from "../../src/env.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import type { Secrets } from "../../src/programs/stack/stack-secrets.ts";
import { createDatabase } from "../../src/storage/libsql.ts";
import { SECRET_MARK } from "./secret-mark.ts";

/** Stores with data of every kind, and what is needed to compare the data of two stores. */

export const PASSWORD = `${SECRET_MARK} long enough`;
export const API_KEY = `${SECRET_MARK}-api-key-of-an-app`;
export const GENERATED = `${SECRET_MARK}-generated`;
export const ACTOR = { kind: "console", name: "test", requestId: "r-1" } as const;
/** Prefix of the agents that report during the backup. The data of all others does not change. */
export const BUSY = "busy";

/** Fills the accounts database with a few accounts of each kind, many agents, and rows of all other tables. */
export async function fillAccounts(source: StoresConfig, secrets: Secrets): Promise<void> {
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
  const sealedApiKey = await createEncryptor([secrets.ENCRYPTION_KEY]).seal(API_KEY, id);
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

export async function fillTelemetry(source: StoresConfig): Promise<void> {
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
      { settings: { max_partitions_per_insert_block: 0, distributed_foreground_insert: 1 } },
    );
}

/** Returns a hash of each table of the accounts database, without the gazetteer and the rows that busy agents write. */
export async function accountsOf({ LIBSQL_URL: url }: StoresConfig): Promise<Record<string, string>> {
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

/** Returns the number of rows and a hash of each table of telemetry, without the rows of busy agents. */
export async function telemetryOf(config: StoresConfig): Promise<Record<string, unknown>> {
  const hashes: Record<string, unknown> = {};
  for (const table of ["points_v1", "texts_v1", "minutes_v1", "agents_v1"]) {
    const query = `SELECT count() AS n, toString(groupBitXor(cityHash64(*))) AS hash FROM ${table} FINAL WHERE NOT startsWith(ap_id, '${BUSY}')`;
    hashes[table] = (await queryRows(config, Hashed, query))[0];
  }
  return hashes;
}

export const count = async (config: StoresConfig, query: string): Promise<number> =>
  (await queryRows(config, Counted, query))[0].n;

/** Sends samples and creates accounts until `isStopped` is set. Counts the committed samples. */
export function keepBusy(source: StoresConfig) {
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
