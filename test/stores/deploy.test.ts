import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@clickhouse/client-web";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { checkStores } from "../../scripts/ops/deploy/check-stores.ts";
import { deployWorker, listSecrets, putSecrets } from "../../scripts/ops/deploy/cloudflare.ts";
import { checkKeys, loadKeys } from "../../scripts/ops/deploy/worker-secrets.ts";
import type { Problem } from "../../scripts/ops/deploy/worker-settings.ts";
import { checkHosts, checkSettings, readDeploySettings } from "../../scripts/ops/deploy/worker-settings.ts";
import { parseStoresEnv } from "../../src/env.ts";
import { brokerComponent } from "../../src/programs/stack/components/broker-process.ts";
import { clickhouseSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { migrateAccounts } from "../../src/programs/stack/migrations.ts";
import { pendingAccounts, pendingTelemetry } from "../../src/programs/stack/pending-migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";
import { startCloudflareApi } from "../support/cloudflare-api.ts";
import { runScript } from "../support/run-script.ts";
import { SECRET_MARK } from "../support/secret-mark.ts";

const SECRET = `${SECRET_MARK} of a store`;
const SETTINGS = {
  LIBSQL_URL: "libsql://accounts.example.com",
  CLICKHOUSE_URL: "https://telemetry.example.com:8443",
  MQTT_URL: "mqtts://broker.example.com",
  PUBLIC_URL: "https://controller.example.com",
};
/** Wrangler starts slowly, and several times. */
const TIMEOUT_MS = 300_000;
const KEYS = ["JWT_KEYS", "ENCRYPTION_KEY", "CREDENTIAL_PEPPER"];

const folder = mkdtempSync(join(tmpdir(), "deploy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const messages = (problems: Problem[]): string[] => problems.map(({ message }) => message);

describe("the settings of a deployment", () => {
  it("are read from the environment, then from a file, with secrets apart", () => {
    const file = join(folder, "settings.env");
    writeFileSync(file, `LIBSQL_URL=libsql://other.example.com\nCLICKHOUSE_PASSWORD='${SECRET}'\nOTHER=1\n`);
    expect(readDeploySettings({ ...SETTINGS, CORS_ORIGINS: "" }, file)).toEqual({
      vars: SETTINGS,
      secrets: { CLICKHOUSE_PASSWORD: SECRET },
    });
  });

  it("are complete if the Worker has the secrets", () => {
    const settings = readDeploySettings(SETTINGS, undefined);
    expect(checkSettings(settings, KEYS)).toEqual([]);
    expect(messages(checkSettings(settings, ["JWT_KEYS"]))).toEqual([
      "ENCRYPTION_KEY is missing.",
      "CREDENTIAL_PEPPER is missing.",
    ]);
  });

  it("have all their problems reported at once, without their values", () => {
    const env = {
      MQTT_URL: "mqtts://a.example.com,mqtts://me:secret@b.example.com",
      AGENT_SHARDS: "many",
      CLICKHOUSE_PASSWORD: SECRET,
    };
    expect(messages(checkSettings(readDeploySettings(env, undefined), KEYS))).toEqual([
      "LIBSQL_URL is missing.",
      "CLICKHOUSE_URL is missing.",
      "AGENT_SHARDS must be a number.",
      "MQTT_URL must not contain a password.",
      "PUBLIC_URL is missing: links in e-mails begin with it.",
      "CLICKHOUSE_PASSWORD is set here, but the Worker does not have it: pass --secrets.",
    ]);
  });

  it.each(["http://127.0.0.1:8080", "https://localhost", "http://[::1]:8080", "http://db.internal"])(
    "must name public hosts, not %s",
    (url) => {
      const check = (env: object) => messages(checkHosts(readDeploySettings({ ...SETTINGS, ...env }, undefined)));
      expect(check({ LIBSQL_URL: url })).toEqual([expect.stringMatching(/^LIBSQL_URL must name a public host/)]);
      const list = `https://telemetry.example.com:8443, ${url}`;
      expect(check({ CLICKHOUSE_URL: list })).toEqual([
        expect.stringMatching(/^CLICKHOUSE_URL must name a public host/),
      ]);
      expect(check({})).toEqual([]);
    },
  );
});

describe("the keys of a deployment", () => {
  it("are generated once, and accepted if the service publishes one of them", async () => {
    const [own, other] = [join(folder, "own"), join(folder, "other")];
    const keys = await loadKeys(own);
    expect(await loadKeys(own)).toEqual(keys);
    const { kid } = (JSON.parse(keys.JWT_KEYS) as { kid: string }[])[0] ?? {};
    const server = createServer((_, response) => response.end(JSON.stringify({ keys: [{ kid }] })));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await checkKeys(own, url)).toEqual([]);
    expect(messages(await checkKeys(other, url))).toEqual([expect.stringContaining("already has keys")]);
    await loadKeys(other);
    expect(messages(await checkKeys(other, url))).toEqual([expect.stringContaining("keys of another service")]);
    server.close();
    server.closeAllConnections();
    expect(messages(await checkKeys(own, url))).toEqual([expect.stringContaining("Cannot verify")]);
  });
});

describe("wrangler, with a stand-in for Cloudflare", () => {
  it("lists the secrets of a new Worker, stores some, and deploys with the settings that are not secret", {
    timeout: TIMEOUT_MS,
  }, async () => {
    const cloudflare = await startCloudflareApi();
    for (const [name, value] of Object.entries(cloudflare.env)) vi.stubEnv(name, value);
    try {
      const target = { name: "staging", domain: "controller.example.com" };
      expect(await listSecrets(target)).toEqual([]);
      await deployWorker(target, SETTINGS);
      expect(cloudflare.uploaded).toMatch(
        /"name":"CLICKHOUSE_URL","type":"plain_text","text":"https:\/\/telemetry\.example\.com:8443"/,
      );
      await putSecrets(target, { CLICKHOUSE_PASSWORD: SECRET });
      expect(cloudflare.secrets).toEqual({ CLICKHOUSE_PASSWORD: SECRET });
      expect(await listSecrets(target)).toEqual(["CLICKHOUSE_PASSWORD"]);
    } finally {
      vi.unstubAllEnvs();
      cloudflare.close();
    }
  });
});

describe("the stores of a deployment", () => {
  const supervisor = new Supervisor();
  const clickhouse = clickhouseSettings(inject("clickhouseUrl"), inject("clickhouseAccess").owner);
  const env = { ...SETTINGS, LIBSQL_URL: "", ...clickhouse, CLICKHOUSE_DATABASE: "deployed", MQTT_URL: "" };

  beforeAll(async () => {
    const [sqld, tcpPort, wsPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
    const jwksUrl = "http://127.0.0.1:9";
    await Promise.all([
      supervisor.start(sqldComponent(folder, sqld)),
      supervisor.start(brokerComponent({ dataDir: folder, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: "me" })),
    ]);
    env.LIBSQL_URL = `http://127.0.0.1:${sqld}`;
    env.MQTT_URL = `ws://127.0.0.1:${wsPort}`;
  });
  afterAll(async () => await supervisor.stop());

  it("are checked, and each unavailable one is reported with the reason", async () => {
    expect(await checkStores(parseStoresEnv(env), env.MQTT_URL)).toEqual([]);
    const wrong = parseStoresEnv({ ...env, LIBSQL_URL: "http://127.0.0.1:9", CLICKHOUSE_PASSWORD: SECRET });
    const problems = await checkStores(wrong, "mqtt://127.0.0.1:9");
    expect(problems).toEqual([
      { area: "stores", message: expect.stringMatching(/^The accounts database \(LIBSQL_URL\) .*: .+/) },
      { area: "stores", message: expect.stringMatching(/^ClickHouse \(CLICKHOUSE_URL\) .*Authentication failed/) },
      { area: "broker", message: expect.stringMatching(/^The broker \(MQTT_URL\) .*ECONNREFUSED/) },
    ]);
    expect(JSON.stringify(problems)).not.toContain(SECRET);
  });

  it("get all migrations before a first deployment, and destructive ones after a later one", async () => {
    const config = parseStoresEnv(env);
    const [accounts, telemetry] = [await pendingAccounts(config), await pendingTelemetry(config)];
    expect([...accounts, ...telemetry].every(({ isDestructive }) => !isDestructive)).toBe(true);
    expect(accounts[0]?.name).toBe("drizzle/0000_accounts.sql");
    expect(telemetry.map(({ name }) => name)).toContain("0003_no_catalogue.sql");

    await migrateAccounts(config);
    expect(await pendingAccounts(config)).toEqual([]);
    // An earlier version left this state.
    await migrateTelemetry(config, ({ name }) => name < "0003");
    const pending = await pendingTelemetry(config);
    expect(pending).toContainEqual({ name: "0003_no_catalogue.sql", isDestructive: true });

    const client = createClient({
      url: env.CLICKHOUSE_URL,
      username: env.CLICKHOUSE_USER,
      password: env.CLICKHOUSE_PASSWORD,
      database: config.CLICKHOUSE_DATABASE,
    });
    const exists = async () => (await client.query({ query: "EXISTS metrics_v1", format: "TabSeparated" })).text();
    await migrateTelemetry(config, ({ name }) => !pending.some((other) => other.isDestructive && other.name === name));
    expect(await exists()).toBe("1\n");
    await migrateTelemetry(config);
    expect(await exists()).toBe("0\n");
    expect(await pendingTelemetry(config)).toEqual([]);
    await client.close();
  });

  const deploy = async (settings: Record<string, string>, ...args: string[]) => {
    const cloudflare = await startCloudflareApi();
    const outcome = await runScript("deploy", args, { ...cloudflare.env, ...settings });
    cloudflare.close();
    expect(outcome.output).not.toContain(SECRET);
    expect(cloudflare.secrets).toEqual({});
    return outcome;
  };

  it("are checked by the command, which reports all problems at once", { timeout: TIMEOUT_MS }, async () => {
    const { code, output } = await deploy({ ...env, CLICKHOUSE_PASSWORD: SECRET, LIVE_WINDOW_MINUTES: "x" });
    expect(code).toBe(1);
    for (const line of [
      /✗ JWT_KEYS is missing\./,
      /✗ LIVE_WINDOW_MINUTES must be a number\./,
      /✗ CLICKHOUSE_PASSWORD is set here/,
      /✗ LIBSQL_URL must name a public host/,
      /✗ ClickHouse .*Authentication failed/,
      /Nothing was changed\.\n$/,
    ]) {
      expect(output).toMatch(line);
    }
  });

  it("pass a dry run, which changes nothing", { timeout: TIMEOUT_MS }, async () => {
    const args = ["--dry-run", "--secrets", join(folder, "none yet")];
    const { code, output } = await deploy({ ...env, SETUP_TOKEN: SECRET }, ...args);
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringMatching(/✓ All checks passed.*\nNothing was changed/),
    });
    expect(existsSync(join(folder, "none yet"))).toBe(false);
  });
});
