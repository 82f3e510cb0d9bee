import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { newClickHouseAccess } from "../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../src/programs/stack/components/clickhouse-process.ts";

const folder = mkdtempSync(join(tmpdir(), "controller-clickhouse-access-"));
const url = inject("clickhouseUrl");
const access = inject("clickhouseAccess");

const basic = (user: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});
const logins = {
  owner: basic(access.owner.user, access.owner.password),
  worker: basic(access.worker.user, access.worker.password),
};

const run = async (who: keyof typeof logins, sql: string) => {
  const response = await fetch(url, { method: "POST", headers: logins[who], body: sql });
  return { status: response.status, text: await response.text() };
};

beforeAll(async () => {
  for (const sql of [
    "CREATE DATABASE IF NOT EXISTS guarded",
    "CREATE TABLE IF NOT EXISTS guarded.lines (line String) ENGINE = MergeTree ORDER BY line",
    "INSERT INTO guarded.lines VALUES ('ours')",
  ])
    expect(await run("owner", sql)).toEqual({ status: 200, text: "" });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the local ClickHouse", () => {
  const SELECT = "SELECT * FROM guarded.lines";
  const inUrl = encodeURIComponent(SELECT);
  const pageHeaders = { Origin: "https://page.example.com", "Content-Type": "text/plain" };
  const strangers: [string, string, RequestInit][] = [
    ["a query without a login", "/", { method: "POST", body: SELECT }],
    ["a query that a web page posts as text", "/", { method: "POST", headers: pageHeaders, body: SELECT }],
    ["a query that a web page has in the address of a picture", `/?query=${inUrl}`, { headers: pageHeaders }],
    ["a web page that asks what it may send", "/", { method: "OPTIONS", headers: pageHeaders }],
    ["a form", "/", { method: "POST", body: new URLSearchParams({ query: SELECT, user: "default", password: "" }) }],
    ["the default user in the address", `/?user=default&query=${inUrl}`, {}],
    ["the default user with an empty password in the address", `/?user=default&password=&query=${inUrl}`, {}],
    ["the default user in a header", `/?query=${inUrl}`, { headers: { "X-ClickHouse-User": "default" } }],
    ["the default user as Basic", `/?query=${inUrl}`, { headers: basic("default", "") }],
    ["the owner without a password", `/?query=${inUrl}`, { headers: basic("owner", "") }],
    ["the owner with another password", `/?query=${inUrl}`, { headers: basic("owner", "password") }],
    ["the owner with a hash in place of the password", `/?query=${inUrl}`, { headers: basic("owner", "0".repeat(64)) }],
    ["the Worker with the owner's password", `/?query=${inUrl}`, { headers: basic("worker", access.owner.password) }],
    ["the owner in X-ClickHouse headers", `/?query=${inUrl}`, { headers: { "X-ClickHouse-User": "owner" } }],
    [
      "the default user beside a login that is wrong",
      `/?query=${inUrl}`,
      { headers: { ...basic("owner", ""), "X-ClickHouse-User": "default" } },
    ],
    ...["/ping", "/play", "/dashboard", "/replicas_status", "/binary", "/merges", "/metrics", "/js/uplot.js"].map(
      (path): [string, string, RequestInit] => [`the page ${path}`, path, {}],
    ),
  ];

  it.each(strangers)("refuses %s", async (_what, path, init) => {
    const response = await fetch(`${url}${path}`, init);
    expect([401, 403, 404, 501]).toContain(response.status);
    expect(response.headers.get("Access-Control-Allow-Origin")).toBeNull();
    expect(await response.text()).not.toContain("ours");
  });

  it.each(["owner", "worker"])(
    "gives the default user no session, whatever login the %s header claims",
    async (user) => {
      for (const login of [basic(user, ""), logins[user as "owner"]]) {
        for (const query of ["user=default", "user=default&password=", "user=default&session_id=x", "%75ser=default"]) {
          const response = await fetch(`${url}/?${query}&query=SELECT+'reached'`, { headers: login });
          expect(response.ok).toBe(false);
          expect(await response.text()).not.toContain("reached\n");
        }
      }
    },
  );

  const secret = "/etc/passwd";
  const written = join(folder, "written");
  const refused = [
    `SELECT * FROM file('${secret}', LineAsString)`,
    `SELECT * FROM \`${secret}\``,
    `DESCRIBE TABLE file('${secret}', LineAsString)`,
    `INSERT INTO FUNCTION file('${written}', CSV, 'a String') VALUES ('x')`,
    `SELECT 1 INTO OUTFILE '${written}'`,
    `SELECT * FROM filesystem('/etc')`,
    `SELECT * FROM fileCluster('default', '${secret}', LineAsString)`,
    `SELECT * FROM icebergLocal('/etc')`,
    `SELECT * FROM executable('cat', LineAsString, 'a String', (SELECT 1))`,
    "SELECT * FROM url('http://127.0.0.1:9/', LineAsString)",
    "SELECT * FROM s3('http://127.0.0.1:9/bucket/key', 'CSV', 'a String')",
    "SELECT * FROM azureBlobStorage('http://127.0.0.1:9/', 'c', 'b')",
    "SELECT * FROM hdfs('hdfs://127.0.0.1:9/a', CSV, 'a String')",
    "SELECT * FROM remote('127.0.0.1:9', system.one)",
    "SELECT * FROM cluster('default', system.one)",
    "SELECT * FROM mysql('127.0.0.1:9', 'd', 't', 'u', 'p')",
    "SELECT * FROM postgresql('127.0.0.1:9', 'd', 't', 'u', 'p')",
    "SELECT * FROM mongodb('127.0.0.1:9', 'd', 't', 'u', 'p', 'a String')",
    "SELECT * FROM redis('127.0.0.1:9', 'k', 'k String, v String')",
    "SELECT * FROM odbc('DSN=x', 'd', 't')",
    "SELECT * FROM jdbc('x', 'd', 't')",
    ...["File(CSV)", "URL('http://127.0.0.1:9/', CSV)", "S3('http://127.0.0.1:9/bucket/key', 'CSV')"].flatMap(
      (engine) => [
        `CREATE TABLE guarded.outside (a String) ENGINE = ${engine}`,
        `CREATE TEMPORARY TABLE outside (a String) ENGINE = ${engine}`,
      ],
    ),
    "CREATE TABLE guarded.outside (a String) ENGINE = Executable('x', TabSeparated)",
    "CREATE TABLE guarded.outside (a String) ENGINE = Memory",
    "CREATE TABLE guarded.outside (a String) ENGINE = MySQL('127.0.0.1:9', 'd', 't', 'u', 'p')",
    `CREATE TABLE guarded.outside (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = '${written}/')`,
    `CREATE DICTIONARY guarded.outside (a UInt64, b String) PRIMARY KEY a SOURCE(FILE(path '${secret}' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)`,
    "CREATE DICTIONARY guarded.outside (a UInt64, b String) PRIMARY KEY a SOURCE(HTTP(url 'http://127.0.0.1:9/' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
    "CREATE DATABASE outside",
    "CREATE DATABASE outside ENGINE = Filesystem('/etc')",
    "CREATE FUNCTION outside AS x -> x",
    "CREATE NAMED COLLECTION outside AS a = 1",
    "CREATE USER outside",
    "GRANT ALL ON *.* TO owner",
    `BACKUP TABLE guarded.lines TO File('${written}')`,
    `RESTORE TABLE guarded.lines FROM File('${written}')`,
    "SELECT * FROM system.users",
    "SELECT * FROM system.server_settings",
    "SELECT addressToLine(1) SETTINGS allow_introspection_functions = 1",
    "SYSTEM STOP LISTEN HTTP",
    "SYSTEM SHUTDOWN",
    "DROP DATABASE guarded",
  ];

  it.each(refused.flatMap((sql) => (["owner", "worker"] as const).map((who) => [who, sql] as const)))(
    "refuses the %s login %s",
    async (who, sql) => {
      const { status, text } = await run(who, sql);
      expect(status).toBeGreaterThanOrEqual(400);
      expect(text).toMatch(/ACCESS_DENIED|NOT_ALLOWED|UNKNOWN_|DOESNT_EXIST|INVALID_CONFIG|BAD_ARGUMENTS|UNSUPPORTED/);
      expect(text).not.toContain("root:");
      expect(existsSync(written) && statSync(written).isFile()).toBe(false);
    },
  );

  it("lets the Worker's login read and insert, and neither create, change nor drop", async () => {
    expect((await run("worker", "INSERT INTO guarded.lines VALUES ('more')")).status).toBe(200);
    expect((await run("worker", "SELECT line FROM guarded.lines ORDER BY line")).text).toBe("more\nours\n");
    expect((await run("worker", "SELECT count() > 0 FROM system.disks")).text).toBe("1\n");
    for (const sql of [
      "CREATE TABLE guarded.another (a String) ENGINE = Null",
      "ALTER TABLE guarded.lines ADD COLUMN a String",
      "ALTER TABLE guarded.lines DELETE WHERE 1",
      "TRUNCATE TABLE guarded.lines",
      "DROP TABLE guarded.lines",
      "OPTIMIZE TABLE guarded.lines",
      "SELECT * FROM system.processes",
    ])
      expect((await run("worker", sql)).text).toContain("ACCESS_DENIED");
  });

  it("finds its passwords neither in its arguments nor in clear in its files, which only their owner reads", () => {
    const fresh = newClickHouseAccess();
    const dataDir = join(folder, "a & b");
    const part = clickhouseComponent({
      dataDir,
      port: 1,
      access: fresh,
      databases: ["controller"],
      executable: "clickhouse",
    });
    const files = readdirSync(dataDir, { recursive: true, withFileTypes: true });
    expect(files.filter((file) => file.isFile()).map(({ name }) => name)).toEqual(["config.xml", "users.xml"]);
    for (const file of files)
      expect(statSync(join(file.parentPath, file.name)).mode & 0o777).toBe(file.isFile() ? 0o600 : 0o700);
    const texts = files.flatMap((file) =>
      file.isFile() ? readFileSync(join(file.parentPath, file.name), "utf8") : [],
    );
    for (const { password } of [fresh.owner, fresh.worker])
      expect([...part.args, JSON.stringify(part.env ?? {}), ...texts].join("\n")).not.toContain(password);
    expect(fresh.owner.password).not.toBe(newClickHouseAccess().owner.password);
  });
});
