import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAppStore } from "../../../src/accounts/app-store.ts";
import { createEncryptor } from "../../../src/auth/encryptor.ts";
import { createSecretHasher } from "../../../src/auth/secrets.ts";
import { parseStoresEnv } from "../../../src/env.ts";
import { sqldComponent } from "../../../src/programs/stack/components/sqld.ts";
import { migrateAccounts } from "../../../src/programs/stack/migrations.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { loadSecrets } from "../../../src/programs/stack/stack-secrets.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import { createDatabase } from "../../../src/storage/libsql.ts";
import { runScript } from "../../support/run-script.ts";
import { SECRET_MARK } from "../../support/secret-mark.ts";

const API_KEY = `${SECRET_MARK}-api-key-of-an-app`;
const ACTOR = { kind: "console", name: "test", requestId: "" } as const;
const PERMISSIONS = { agents: true, data: false, commands: false, emulator: false };

const folder = mkdtempSync(join(tmpdir(), "controller-keys-"));
const dataDir = join(folder, "data");
const supervisor = new Supervisor();
let url: string;

beforeAll(async () => {
  mkdirSync(dataDir);
  const port = await anyFreePort();
  url = `http://127.0.0.1:${port}`;
  await supervisor.start(sqldComponent(folder, port));
  await migrateAccounts(parseStoresEnv({ LIBSQL_URL: url, CLICKHOUSE_URL: url }));
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const admin = (command: string) => runScript("admin", [command], { DATA_DIR: dataDir, LIBSQL_URL: url });
const keysOf = async (name: "ENCRYPTION_KEY" | "CREDENTIAL_PEPPER") => (await loadSecrets(dataDir))[name].split(",");

describe("the rotation of secrets", () => {
  it("replaces the encryption key while everything stays readable, and makes the old key useless", async () => {
    const [old = ""] = await keysOf("ENCRYPTION_KEY");
    const apps = createAppStore(createDatabase({ url }));
    const seal = async (appName: string, keys: string[]) => {
      const id = crypto.randomUUID();
      const sealedApiKey = await createEncryptor(keys).seal(API_KEY, id);
      await apps.insert({ id, appName, sealedApiKey, permissions: PERMISSIONS }, ACTOR);
    };
    const open = async (appName: string, keys: string[]) => {
      const app = await apps.find(appName);
      return await createEncryptor(keys).open(app?.sealedApiKey ?? "", app?.id ?? "");
    };
    await seal("before", [old]);
    const client = createClient({ url });
    await client.execute({
      sql: "INSERT INTO outbox (job_number, part, topic, payload, created_at, due_at, expires_at, published) VALUES ('j', 1, 't', ?, 1, 1, 1, 0)",
      args: [await createEncryptor([old]).seal("message", "j")],
    });

    expect((await admin("reseal")).code).toBe(1);
    expect((await admin("rotate-encryption")).code).toBe(0);
    const both = await keysOf("ENCRYPTION_KEY");
    expect(both).toEqual([expect.not.stringContaining(old), old]);
    expect((await admin("rotate-encryption")).output).toContain("A rotation is already in progress");
    await seal("during", both);
    expect(await open("before", both)).toBe(API_KEY);

    const { output } = await admin("reseal");
    expect(output).toContain("Encrypted 2 secrets with the new key");
    const current = await keysOf("ENCRYPTION_KEY");
    expect(current).toEqual([both[0]]);
    expect(output).not.toContain(current[0]);
    for (const name of ["before", "during"]) {
      expect(await open(name, current)).toBe(API_KEY);
      await expect(open(name, [old])).rejects.toThrow();
    }
    const { rows } = await client.execute("SELECT payload FROM outbox");
    expect(await createEncryptor(current).open(String(rows[0]?.payload), "j")).toBe("message");
    client.close();
  });

  it("replaces the pepper, and accepts earlier credentials until the rotation is complete", async () => {
    const old = await keysOf("CREDENTIAL_PEPPER");
    const hash = await createSecretHasher(old).hash(API_KEY);
    await admin("rotate-pepper");
    const both = createSecretHasher(await keysOf("CREDENTIAL_PEPPER"));
    expect([await both.verify(hash, API_KEY), await both.verify(hash, `${API_KEY}x`)]).toEqual([true, false]);
    const fresh = await both.hash(API_KEY);
    expect(fresh).not.toBe(hash);
    await admin("rotate-pepper");
    const current = createSecretHasher(await keysOf("CREDENTIAL_PEPPER"));
    expect([await current.verify(fresh, API_KEY), await current.verify(hash, API_KEY)]).toEqual([true, false]);
  });
});
