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
const BY = { kind: "console", name: "test", requestId: "" } as const;
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
  it("replaces the encryption key while everything stays readable, and makes the former key useless", async () => {
    const [former = ""] = await keysOf("ENCRYPTION_KEY");
    const apps = createAppStore(createDatabase({ url }));
    const seal = async (appName: string, keys: string[]) => {
      const id = crypto.randomUUID();
      const sealedApiKey = await createEncryptor(keys).seal(API_KEY, id);
      await apps.insert({ id, appName, sealedApiKey, permissions: PERMISSIONS }, BY);
    };
    const open = async (appName: string, keys: string[]) => {
      const app = await apps.find(appName);
      return await createEncryptor(keys).open(app?.sealedApiKey ?? "", app?.id ?? "");
    };
    await seal("before", [former]);
    const client = createClient({ url });
    await client.execute({
      sql: "INSERT INTO outbox (job_number, part, topic, payload, created_at, due_at, expires_at, published) VALUES ('j', 1, 't', ?, 1, 1, 1, 0)",
      args: [await createEncryptor([former]).seal("message", "j")],
    });

    expect((await admin("reseal")).code).toBe(1);
    expect((await admin("rotate-encryption")).code).toBe(0);
    const both = await keysOf("ENCRYPTION_KEY");
    expect(both).toEqual([expect.not.stringMatching(former), former]);
    expect((await admin("rotate-encryption")).output).toContain("A change is under way already");
    await seal("meanwhile", both);
    expect(await open("before", both)).toBe(API_KEY);

    const { output } = await admin("reseal");
    expect(output).toContain("2 secrets are sealed anew");
    const present = await keysOf("ENCRYPTION_KEY");
    expect(present).toEqual([both[0]]);
    expect(output).not.toContain(present[0]);
    for (const name of ["before", "meanwhile"]) {
      expect(await open(name, present)).toBe(API_KEY);
      await expect(open(name, [former])).rejects.toThrow();
    }
    const { rows } = await client.execute("SELECT payload FROM outbox");
    expect(await createEncryptor(present).open(String(rows[0]?.payload), "j")).toBe("message");
    client.close();
  });

  it("replaces the pepper, and accepts earlier credentials until the rotation is complete", async () => {
    const former = await keysOf("CREDENTIAL_PEPPER");
    const hash = await createSecretHasher(former).hash(API_KEY);
    await admin("rotate-pepper");
    const both = createSecretHasher(await keysOf("CREDENTIAL_PEPPER"));
    expect([await both.verify(hash, API_KEY), await both.verify(hash, `${API_KEY}x`)]).toEqual([true, false]);
    const fresh = await both.hash(API_KEY);
    expect(fresh).not.toBe(hash);
    await admin("rotate-pepper");
    const present = createSecretHasher(await keysOf("CREDENTIAL_PEPPER"));
    expect([await present.verify(fresh, API_KEY), await present.verify(hash, API_KEY)]).toEqual([true, false]);
  });
});
