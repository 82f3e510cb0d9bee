import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { StoresConfig } from "../../env.ts";

/** The numbered DDL files of ClickHouse, for one server and for a cluster. */

const FOLDER = fileURLToPath(new URL("../../telemetry/store/ddl/", import.meta.url));

export interface DdlFile {
  name: string;
  sql: string;
  hash: string;
}

/** Returns the DDL files in order. A cluster has its own files. */
export function ddlFiles(cluster: string | undefined): DdlFile[] {
  const folder = cluster === undefined ? FOLDER : `${FOLDER}cluster/`;
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const sql = readFileSync(`${folder}${file}`, "utf8");
      const hash = createHash("sha256").update(sql).digest("hex");
      return { name: cluster === undefined ? file : `cluster/${file}`, sql, hash };
    });
}

type ClusterSettings = Pick<StoresConfig, "CLICKHOUSE_CLUSTER" | "CLICKHOUSE_REPLICATION">;

/** Returns whether the nodes of a cluster know nothing of each other's tables. Each statement must then run on each of them. */
export const isUnreplicated = ({ CLICKHOUSE_CLUSTER, CLICKHOUSE_REPLICATION }: ClusterSettings): boolean =>
  CLICKHOUSE_CLUSTER !== undefined && CLICKHOUSE_REPLICATION === "none";

/** Returns the clause for statements that create or change a table. */
export const onClusterOf = (config: ClusterSettings): string =>
  config.CLICKHOUSE_CLUSTER === undefined || isUnreplicated(config) ? "" : `ON CLUSTER ${config.CLICKHOUSE_CLUSTER}`;

const ON_CLUSTER = " ON CLUSTER <cluster>";

export interface Statement {
  query: string;
  /** Whether it runs on each node of the cluster: on all at once, or one after the other. */
  isForEachNode: boolean;
}

/** Splits SQL at semicolons at the end of a line, and completes each statement with the settings of the cluster. */
export const statementsOf = (sql: string, config: ClusterSettings): Statement[] =>
  sql
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "")
    .map((statement) => ({
      query: (isUnreplicated(config) ? withoutReplication(statement) : statement).replaceAll(
        "<cluster>",
        config.CLICKHOUSE_CLUSTER ?? "",
      ),
      isForEachNode: statement.includes(ON_CLUSTER),
    }));

/** Replaces replicated tables by plain ones, which remember as many deduplication tokens. */
const withoutReplication = (statement: string): string =>
  statement
    .replaceAll(ON_CLUSTER, "")
    .replace(/\bReplicated(\w*MergeTree)\('[^']*', '\{replica\}'\)/g, "$1")
    .replace(
      /\breplicated_deduplication_window = (\d+),\s*replicated_deduplication_window_seconds = \d+/g,
      "non_replicated_deduplication_window = $1",
    );
