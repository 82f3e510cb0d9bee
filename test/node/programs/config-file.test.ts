import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { loadConfiguration, parseConfiguration } from "../../../src/programs/shared/config-file.ts";
import { readSettings, SETTINGS } from "../../../src/programs/shared/settings.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { generateSecrets } from "../../../src/programs/stack/stack-secrets.ts";

describe("a configuration file", () => {
  let folder: string;
  let file: string;
  const write = (text: string, mode = 0o600): void => {
    writeFileSync(file, text);
    chmodSync(file, mode);
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "configuration-"));
    file = join(folder, "controller.conf");
  });
  afterEach(() => {
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });

  it("sets environment variables that are not set yet", () => {
    write("# ours\n\nPORT=8000\r\nHOST=0.0.0.0\nSETUP_TOKEN='it has a # and a \"'\nMAIL_URL=\n");
    const env = { HOST: "127.0.0.1" };
    loadConfiguration(file, env);
    const token = 'it has a # and a "';
    expect(env).toEqual({ HOST: "127.0.0.1", PORT: "8000", SETUP_TOKEN: token, MAIL_URL: "" });
  });

  it("is read once if CONTROLLER_CONFIG names it", () => {
    write("PORT=8000");
    const env = { CONTROLLER_CONFIG: file };
    loadConfiguration(undefined, env);
    expect(env).toEqual({ PORT: "8000" });
    loadConfiguration(undefined, env);
  });

  it.each([
    ["PORT=8000\nTELEMTRY_DAYS=3", "line 2: Unknown setting TELEMTRY_DAYS."],
    ["toString=1", "line 1: Unknown setting toString."],
    ["PORT 8000", "line 1: Expected NAME=value."],
    ["PORT=8000\nHOST=::\nPORT=8001", "line 3: PORT is set twice."],
    ["SETUP_TOKEN=secret#secret", "line 1: Put the value of SETUP_TOKEN in quotes"],
    ['SETUP_TOKEN="secret', "line 1: Put the value of SETUP_TOKEN in quotes"],
    ['SETUP_TOKEN="secret" # ours', "line 1: Put the value of SETUP_TOKEN in quotes"],
  ])("is rejected with an error that does not quote the line: %j", (text, message) => {
    const rejection = (): unknown => {
      try {
        return parseConfiguration(text, "controller.conf");
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(rejection()).toContain(`controller.conf, ${message}`);
    expect(rejection()).not.toContain("secret");
  });

  it("is rejected if it does not exist", () => {
    expect(() => loadConfiguration(file, {})).toThrow(`Cannot read the configuration file ${file} (ENOENT).`);
  });

  it.each([
    ["ENROLMENT_TOKEN=1234567890123456", 0o644, 1],
    ["MAIL_URL=https://mail.example.com/?key=1", 0o644, 1],
    ["ENROLMENT_TOKEN=1234567890123456", 0o640, 0],
    ["ENROLMENT_TOKEN=", 0o644, 0],
    ["PORT=8000", 0o644, 0],
  ])("causes a warning if it contains secrets and everyone can read it: %s, %o", (text, mode, warnings) => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    write(text, mode);
    loadConfiguration(file, {});
    expect(lines).toHaveBeenCalledTimes(warnings);
  });
});

describe("a configuration file with an error", () => {
  const folder = mkdtempSync(join(tmpdir(), "configuration-"));
  const file = join(folder, "controller.conf");
  writeFileSync(file, "TELEMTRY_DAYS=3", { mode: 0o600 });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.concurrent.each(["start", "admin", "migrate", "bridge", "emulator"])(
    "is rejected by npm run %s",
    async (script) => {
      const args = ["run", "--silent", script, "--", "--config", file, ...(script === "admin" ? ["list"] : [])];
      await expect(promisify(execFile)("npm", args)).rejects.toMatchObject({
        code: 1,
        stdout: `${file}, line 1: Unknown setting TELEMTRY_DAYS.\n`,
      });
    },
  );
});

describe("npm run migrate", () => {
  it.each([
    ["an unknown option", ["--after-deplyo"], /^Unknown option --after-deplyo\. See .*--help\.\n$/],
    ["an unavailable store", [], /^Failed: TypeError: fetch failed .*\n$/],
  ])("reports %s in one line", async (_what, options, sentence) => {
    const stores = { LIBSQL_URL: "http://127.0.0.1:9", CLICKHOUSE_URL: "http://127.0.0.1:9" };
    const migrating = promisify(execFile)("npm", ["run", "--silent", "migrate", "--", ...options], {
      env: { ...process.env, ...stores },
    });
    await expect(migrating).rejects.toMatchObject({ code: 1, stdout: expect.stringMatching(sentence) });
  });
});

describe("the example configuration file", () => {
  const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
  /** The settings of an example, including those that are commented out. */
  const entries = (name: string) =>
    [...read(`docs/self-hosting/${name}.conf`).matchAll(/^#?([A-Z_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => ({
      name,
      value,
    }));

  it.each(["controller", "bridge", "emulator"] as const)("lists all settings of the %s", (program) => {
    const names = entries(program).map(({ name }) => name);
    expect(names.toSorted()).toEqual(SETTINGS[program].toSorted());
  });

  it("names the settings that docs/settings.md names", () => {
    const [, section = ""] = /^(.*?)^## Secrets/ms.exec(read("docs/settings.md")) ?? [];
    const firstCells = [...section.matchAll(/^\| ([^|]*) \|/gm)].map(([, cell = ""]) => cell);
    const names = firstCells.flatMap((cell) => [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, name = ""]) => name));
    expect(names.toSorted()).toEqual(SETTINGS.controller.toSorted());
  });

  it("shows the actual defaults, and is valid with every line enabled", async () => {
    const text = entries("controller").map(({ name, value }) => `${name}=${value}\n`);
    const given = readSettings(Object.fromEntries(parseConfiguration(text.join(""), "controller.conf")));
    const defaults = readSettings({});
    const own = ({ host, port, mqttPort, mqttWsPort, dataDir, adminUsername }: typeof given) => {
      return [host, port.number, mqttPort.number, mqttWsPort.number, dataDir, adminUsername];
    };
    expect(own(given)).toEqual(own(defaults));

    const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = await generateSecrets();
    const { libsqlUrl: LIBSQL_URL, clickhouseUrl: CLICKHOUSE_URL, mqttUrl: MQTT_URL } = given;
    const needed = { LIBSQL_URL, CLICKHOUSE_URL, MQTT_URL, ENCRYPTION_KEY, CREDENTIAL_PEPPER };
    const config = ({ workerSettings }: typeof given) =>
      parseEnv({ ...needed, JWT_KEYS: JSON.stringify(JWT_KEYS), ...workerSettings });
    // CORS_ORIGINS is empty by default, so the file shows an example instead.
    const { CORS_ORIGINS, ...expected } = config(defaults);
    expect(CORS_ORIGINS).toEqual([]);
    expect(config(given)).toMatchObject(expected);
  });
});
