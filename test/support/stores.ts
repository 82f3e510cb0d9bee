import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { createTokens } from "../../src/auth/tokens.ts";
import { parseEnv } from "../../src/env.ts";
import { nativePasswords } from "../../src/programs/password-hasher/native-passwords.ts";
import { ensureAdministrator } from "../../src/programs/stack/administrator.ts";
import { brokerComponent } from "../../src/programs/stack/components/broker-process.ts";
import { clickhouseSettings, loginSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { passwordHasherComponent } from "../../src/programs/stack/components/password-hasher-process.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { migrateAccounts } from "../../src/programs/stack/migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { generateSecrets } from "../../src/programs/stack/stack-secrets.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";
import { sharedClickHouse } from "./clickhouse.ts";
import { copyImage, databaseImage } from "./database-image.ts";
import { PASSWORD, SECRET_MARK } from "./secret-mark.ts";

/** Starts the real stores and the broker for the tests inside workerd, on free ports and in a temporary folder. */
export default async function startStores(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "controller-test-"));
  const supervisor = new Supervisor();
  const clickhouse = await sharedClickHouse(project);
  // Start ClickHouse and load the database image concurrently: both take several seconds.
  const starting = clickhouse.start();
  starting.catch(() => {});
  const image = await databaseImage(project);
  const keyServer = createServer();
  const stop = async () => {
    await Promise.all([supervisor.stop(), clickhouse.stop()]);
    keyServer.close();
    keyServer.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
    image.remove();
  };
  try {
    const [sqld, emptySqld, mqtt, mqttWs, keys, passwords] = await Promise.all([
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
      anyFreePort(),
    ]);
    const { JWT_KEYS, BRIDGE_KEY: _, EMULATOR_KEY: __, ...secrets } = await generateSecrets();
    const environment = {
      ...secrets,
      JWT_KEYS: JSON.stringify(JWT_KEYS),
      LIBSQL_URL: `http://127.0.0.1:${sqld}`,
      ...clickhouseSettings(clickhouse.url, clickhouse.access.worker),
      // The owner can read tables that the Worker must not read.
      CLICKHOUSE_OWNER: clickhouse.access.owner.user,
      CLICKHOUSE_OWNER_PASSWORD: clickhouse.access.owner.password,
      MQTT_URL: `ws://127.0.0.1:${mqttWs}`,
      // A second accounts database, without users.
      EMPTY_LIBSQL_URL: `http://127.0.0.1:${emptySqld}`,
      ADMIN_USERNAME: "root@example.com",
      ADMIN_PASSWORD: `${SECRET_MARK} administrator`,
      MQTT_TCP_URL: `mqtt://127.0.0.1:${mqtt}`,
      SIGNUP: "open",
      NEW_USERS: "operator",
      CORS_ORIGINS: "https://dashboard.example.com",
      SETUP_TOKEN: `${SECRET_MARK}-setup-token`,
      ENROLMENT_TOKEN: `${SECRET_MARK}-enrolment-token`,
      METRICS_TOKEN: `${SECRET_MARK}-metrics-token`,
      PASSWORD_HASH: await nativePasswords.hash(PASSWORD),
    };
    const config = parseEnv(environment);
    const passwordService = { url: `http://127.0.0.1:${passwords}`, token: `${SECRET_MARK}-passwords-token` };
    // The Worker under test has no port, so this server publishes its keys for the broker.
    const { publicKeys } = createTokens({ keys: config.JWT_KEYS, issuer: config.JWT_ISSUER, lifetimeSeconds: 60 });
    keyServer.on("request", (_, response) => void response.end(JSON.stringify(publicKeys())));
    keyServer.listen(keys, "127.0.0.1");
    const accounts = async (port: number, url: string, withAdministrator: boolean) => {
      if (withAdministrator) copyImage(image.folder, join(folder, String(port)));
      await supervisor.start({ ...sqldComponent(join(folder, String(port)), port), name: `sqld ${port}` });
      if (withAdministrator) await ensureAdministrator({ url }, environment.ADMIN_USERNAME, environment.ADMIN_PASSWORD);
      else await migrateAccounts({ ...config, LIBSQL_URL: url });
    };
    await Promise.all([
      accounts(sqld, environment.LIBSQL_URL, true),
      accounts(emptySqld, environment.EMPTY_LIBSQL_URL, false),
      starting.then(() => migrateTelemetry({ ...config, ...loginSettings(clickhouse.access.owner) })),
      supervisor.start(
        brokerComponent({
          dataDir: folder,
          host: "127.0.0.1",
          tcpPort: mqtt,
          wsPort: mqttWs,
          jwksUrl: `http://127.0.0.1:${keys}`,
          issuer: config.JWT_ISSUER,
        }),
      ),
      supervisor.start(passwordHasherComponent({ port: passwords, token: passwordService.token })),
    ]);
    project.provide("workerEnvironment", environment);
    project.provide("passwordService", passwordService);
    project.provide("passwordSamples", await passwordSamples());
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns passwords in many scripts, with hashes of the native module that the Worker must verify. */
async function passwordSamples() {
  const passwords = [
    "correct horse",
    "Zürich-Straße",
    "пароль-пароль",
    "密码密码密码密码",
    "🔑🔒🔑🔒",
    "nul\0nul\0nul",
    "x".repeat(128),
  ];
  return await Promise.all(
    passwords.map(async (password) => ({ password, nativeHash: await nativePasswords.hash(password) })),
  );
}
