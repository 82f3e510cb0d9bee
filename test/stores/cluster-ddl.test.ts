import { describe, expect, inject, it } from "vitest";
import * as z from "zod";
import { queryRows } from "../../scripts/ops/backup/clickhouse-http.ts";
import { parseStoresEnv } from "../../src/env.ts";
import { clickhouseSettings } from "../../src/programs/stack/components/clickhouse-access.ts";
import { ddlFiles, statementsOf } from "../../src/programs/telemetry-store/ddl.ts";
import { recordStatements, retentionStatement } from "../../src/programs/telemetry-store/migrate.ts";

const config = parseStoresEnv({
  LIBSQL_URL: "http://127.0.0.1",
  ...clickhouseSettings(inject("clickhouseUrl"), inject("clickhouseAccess").owner),
  CLICKHOUSE_DATABASE: "system",
});

const Formatted = z.tuple([z.object({ text: z.string() })]);

/** Returns a statement as ClickHouse's parser writes it. Throws if it has a syntax error. */
const parse = async (statement: string): Promise<string> => {
  const hex = Buffer.from(statement).toString("hex");
  return (await queryRows(config, Formatted, `SELECT formatQuery(unhex('${hex}')) AS text`))[0].text;
};

/** Returns all statements of a new cluster. */
const statementsFor = (replication: "keeper" | "none") => {
  const settings = { ...config, CLICKHOUSE_CLUSTER: "network", CLICKHOUSE_REPLICATION: replication };
  return [
    ...recordStatements(settings),
    ...ddlFiles("network").flatMap(({ sql }) => statementsOf(sql, settings).map(({ query }) => query)),
    retentionStatement(settings, "points_local_v1", "ts", 30),
  ];
};

/** No test runs replicated tables: the server from npm has no Keeper. */
describe("the statements for a cluster", () => {
  it("are accepted by ClickHouse's parser, with replicas and without", async () => {
    for (const replication of ["keeper", "none"] as const) {
      const statements = statementsFor(replication);
      expect(statements.length).toBeGreaterThan(50);
      for (const statement of statements) expect(await parse(statement), statement).not.toBe("");
    }
    await expect(parse("ALTER TABLE points ON CLUSTER MODIFY")).rejects.toThrow("Syntax error");
  });

  it("create replicated tables on the whole cluster, or plain tables on each node", async () => {
    const ofTables = async (replication: "keeper" | "none") => {
      const parsed = await Promise.all(statementsFor(replication).map(parse));
      return parsed.filter(
        (text) => /^CREATE TABLE IF NOT EXISTS \w+_local(?:_v1)?\s/.test(text) && !text.includes("ENGINE = `Null`"),
      );
    };
    const [replicated, plain] = [await ofTables("keeper"), await ofTables("none")];
    expect(replicated.length).toBe(plain.length);
    expect(replicated.length).toBeGreaterThanOrEqual(8);
    for (const text of replicated) {
      expect(text).toContain(" ON CLUSTER network");
      expect(text).toMatch(
        /ENGINE = Replicated\w*MergeTree\('\/clickhouse\/tables\/\{shard\}\/\{database\}\/\w+', '\{replica\}'\)/,
      );
    }
    for (const text of plain) {
      expect(text).toMatch(/ENGINE = (?:Replacing|Aggregating)MergeTree\b/);
      expect(text).not.toMatch(/ON CLUSTER|Replicated|\{replica\}/);
    }
    expect(statementsFor("none").join()).not.toMatch(/ON CLUSTER|\breplicated_deduplication|<cluster>/);
    expect(statementsFor("keeper").join()).not.toMatch(/non_replicated_deduplication|<cluster>/);
  });
});
