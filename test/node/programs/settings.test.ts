import { spawn } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { readSettings } from "../../../src/programs/shared/settings.ts";
import { identifyProcess } from "../../../src/programs/shared/system.ts";
import { DEV_DEFAULTS } from "../../../src/programs/stack/components/worker-dev.ts";
import { openDataFolder } from "../../../src/programs/stack/data-folder.ts";
import { anyFreePort, claimPort } from "../../../src/programs/stack/ports.ts";
import { generateSecrets, loadSecrets, rotateKeys } from "../../../src/programs/stack/stack-secrets.ts";
import { processesWith } from "../../support/processes.ts";
import { runScript } from "../../support/run-script.ts";

const HOST = "127.0.0.1";

describe("settings", () => {
  it("have defaults, also for empty variables", () => {
    expect(readSettings({ PORT: "" })).toMatchObject({
      host: HOST,
      port: { number: 8787, isExplicit: false },
      mqttPort: { number: 1883, isExplicit: false },
      mqttWsPort: { number: 8083, isExplicit: false },
      adminUsername: "admin@example.com",
    });
  });

  /** The settings of the Worker that have no default. */
  async function requiredSettings() {
    const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = await generateSecrets();
    const url = "http://127.0.0.1:1";
    const stores = { LIBSQL_URL: url, CLICKHOUSE_URL: url, MQTT_URL: "ws://127.0.0.1:1" };
    return { ...stores, JWT_KEYS: JSON.stringify(JWT_KEYS), ENCRYPTION_KEY, CREDENTIAL_PEPPER };
  }

  it("of the Worker count as not set if they are empty", async () => {
    const required = await requiredSettings();
    const empty = { CLICKHOUSE_USER: "", CLICKHOUSE_DATABASE: "", AGENT_SHARDS: "", MAP_TILES_URL: "", JWT_ISSUER: "" };
    expect(parseEnv({ ...required, ...empty })).toEqual(parseEnv(required));
    expect(() => parseEnv({ ...required, LIBSQL_URL: "", ENCRYPTION_KEY: "" })).toThrow(
      "The setting LIBSQL_URL is missing. The setting ENCRYPTION_KEY is missing.",
    );
  });

  it("open sign-up in development only, unless SIGNUP says otherwise", async () => {
    const required = await requiredSettings();
    const settings = (env: Record<string, string>, defaults?: Record<string, string>) =>
      parseEnv({ ...required, ...readSettings(env, defaults).workerSettings });
    const signUp = (...given: Parameters<typeof settings>): string => settings(...given).SIGNUP;
    expect(signUp({})).toBe("closed");
    expect(signUp({ SIGNUP: "open" })).toBe("open");
    expect(signUp({}, DEV_DEFAULTS)).toBe("open");
    expect(signUp({ SIGNUP: "" }, DEV_DEFAULTS)).toBe("open");
    expect(signUp({ SIGNUP: "closed" }, DEV_DEFAULTS)).toBe("closed");
    // Null: operator of all access points.
    expect([settings({}).NEW_USERS, settings({}, DEV_DEFAULTS).NEW_USERS]).toEqual([[], null]);
  });

  it.each([
    [{ PORT: "http" }, /PORT must be a port number/],
    [{ MQTT_PORT: "70000" }, /MQTT_PORT must be a port number/],
    [{ ADMIN_PASSWORD: "short" }, /ADMIN_PASSWORD must have 8 to 128 characters/],
    [{ ADMIN_USERNAME: "root" }, /ADMIN_USERNAME must be an e-mail address/],
  ])("are rejected with a clear error: %j", (env, message) => {
    expect(() => readSettings(env)).toThrow(message);
  });
});

describe("a port that is in use", () => {
  let server: Server;
  let port: number;

  beforeEach(async () => {
    server = createServer();
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    port = (server.address() as { port: number }).port;
  });
  afterEach(() => void server.close());

  it("is replaced by the next free port if it is a default", async () => {
    expect(await claimPort({ name: "PORT", number: port, isExplicit: false }, HOST)).toBeGreaterThan(port);
  });

  it("is rejected if the user set it", async () => {
    await expect(claimPort({ name: "PORT", number: port, isExplicit: true }, HOST)).rejects.toThrow(
      `Port ${port} is in use. Set PORT to another one.`,
    );
  });

  it("is reported by npm run dev, which ends at once", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "settings-"));
    expect(await runScript("dev", [], { PORT: String(port), DATA_DIR: dataDir })).toEqual({
      code: 1,
      output: `Port ${port} is in use. Set PORT to another one.\n`,
    });
    rmSync(dataDir, { recursive: true });
  });
});

describe("ports of components", () => {
  it("are not ports of outgoing connections, and not the same for two callers", async () => {
    const ports = await Promise.all(Array.from({ length: 40 }, () => anyFreePort()));
    expect(new Set(ports).size).toBe(40);
    for (const port of ports) expect(port).toBeLessThan(32_768);
  });

  it("are not in use, and were not given to another process whose component does not listen yet", async () => {
    // Outside the ports that other tests get.
    const range = { first: 32_400 + 3 * randomInt(120), count: 3 };
    const script = `import { anyFreePort } from "./src/programs/stack/ports.ts";
      console.log(await anyFreePort(${JSON.stringify(range)}));
      process.stdin.resume();`;
    const other = spawn(process.execPath, ["--input-type=module-typescript", "-e", script], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const [line] = (await once(other.stdout, "data")) as [Buffer];
    const given = Number(line.toString());
    const used = range.first + ((given - range.first + 1) % range.count);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(used, HOST, resolve));

    const free = range.first + ((given - range.first + 2) % range.count);
    expect(await anyFreePort(range)).toBe(free);
    await expect(anyFreePort(range)).rejects.toThrow("There is no free port");
    other.stdin.end();
    await once(other, "exit");
    expect(await anyFreePort(range)).toBe(given);
    server.close();
  });
});

describe("npm start", () => {
  it("stops all its processes when the reader of its output closes the pipe", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "reader-"));
    const run = randomUUID();
    const ports = {
      PORT: String(await anyFreePort()),
      MQTT_PORT: String(await anyFreePort()),
      MQTT_WS_PORT: String(await anyFreePort()),
    };
    const child = spawn("npm", ["run", "--silent", "start"], {
      env: { ...process.env, ...ports, DATA_DIR: dataDir, CONTROLLER_RUN: run },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await new Promise((resolve) => child.stdout.once("data", resolve));
    child.stdout.destroy();
    await ended;
    // The compiler of the Worker ends when it notices that its caller has ended.
    await expect.poll(() => processesWith(`CONTROLLER_RUN=${run}`)).toEqual([]);
    rmSync(dataDir, { recursive: true });
  });
});

describe("--help", () => {
  it.each(["dev", "start"])("describes npm run %s and starts nothing", async (script) => {
    expect(await runScript(script, ["--help"])).toEqual({ code: 0, output: expect.stringContaining("--reset") });
  });

  it("is mentioned in the error about an unknown option", async () => {
    expect(await runScript("dev", ["--rest"])).toEqual({
      code: 1,
      output: expect.stringMatching(/^Unknown option --rest\. See .*--help\.\n$/),
    });
  });
});

describe("the data folder", () => {
  let path: string;
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), "data-folder-"));
  });
  afterEach(() => rmSync(path, { recursive: true, force: true }));

  it("allows one stack at a time", () => {
    const folder = openDataFolder(path, { reset: false });
    expect(() => openDataFolder(path, { reset: false })).toThrow(`Process ${process.pid} already uses ${path}.`);
    folder.release();
    openDataFolder(path, { reset: false }).release();
  });

  it("loses only the stack's own data on a reset", () => {
    openDataFolder(path, { reset: false }).release();
    for (const folder of ["sqld", "thesis"]) mkdirSync(join(path, folder));
    writeFileSync(join(path, "secrets.json"), "{}");
    const left = () => ["sqld", "secrets.json", "thesis"].filter((entry) => existsSync(join(path, entry)));
    openDataFolder(path, { reset: true, keepSecrets: true }).release();
    expect(left()).toEqual(["secrets.json", "thesis"]);
    openDataFolder(path, { reset: true }).release();
    expect(left()).toEqual(["thesis"]);
  });

  it("must not contain files of another program", () => {
    mkdirSync(join(path, "mail"));
    expect(() => openDataFolder(path, { reset: true })).toThrow(`${path} contains files of another program.`);
    expect(existsSync(join(path, "mail"))).toBe(true);
  });

  it.runIf(process.getuid?.() === 0)("is not changed by root if it belongs to another user", async () => {
    chownSync(path, 65_534, 65_534);
    const message = `${path} belongs to another user (65534).`;
    expect(() => openDataFolder(path, { reset: false })).toThrow(message);
    await expect(rotateKeys(path)).rejects.toThrow(message);
    expect(readdirSync(path)).toEqual([]);
  });

  it("is cleared of the processes of an interrupted run", async () => {
    const orphan = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { detached: true });
    const pid = orphan.pid ?? 0;
    const mark = identifyProcess(pid);
    const gone = { pid: 2 ** 22, startTicks: "1" };
    openDataFolder(path, { reset: false }).release();
    writeFileSync(
      join(path, "stack.json"),
      JSON.stringify({ owner: gone, parts: { sqld: mark, broker: gone }, urls: {} }),
    );
    const ended = new Promise((resolve) => orphan.once("exit", (_code, signal) => resolve(signal)));
    openDataFolder(path, { reset: false }).release();
    expect(await ended).toBe("SIGKILL");
  });

  it("keeps its secrets in a file that only its owner can read", async () => {
    const secrets = await loadSecrets(path);
    expect(await loadSecrets(path)).toEqual(secrets);
    expect(statSync(join(path, "secrets.json")).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(join(path, "secrets.json"), "utf8"))).toEqual(secrets);
  });

  it("rotates its signing key in two steps, and keeps the former key meanwhile", async () => {
    const keys = async () => (await loadSecrets(path)).JWT_KEYS.map(({ kid }) => kid);
    const [first] = await keys();
    const { step, key: second } = await rotateKeys(path);
    expect([step, await keys()]).toEqual(["published", [first, second]]);
    expect(await rotateKeys(path)).toEqual({ step: "signs", key: second });
    expect(await keys()).toEqual([second, first]);
    const { key: third } = await rotateKeys(path);
    expect(await keys()).toEqual([second, third]);
  });
});
