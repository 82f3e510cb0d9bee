import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../../shared/cli.ts";
import type { Component } from "../supervisor.ts";
import { type ClickHouseAccess, type Listening, LOOPBACK, writeClickHouseConfig } from "./clickhouse-access.ts";

export interface ClickHouseOptions extends Listening {
  dataDir: string;
  port: number;
  access: ClickHouseAccess;
  /** The databases that the logins may use. */
  databases: readonly string[];
  /** A ClickHouse executable, to run instead of the library from npm. */
  executable: string | undefined;
}

/**
 * The HTTP server of ClickHouse. npm provides it as a library (libchdb), which runs in its own process. On platforms without that library,
 * an executable is needed.
 */
export function clickhouseComponent(options: ClickHouseOptions): Component {
  const { dataDir, port, access, databases, executable, host = LOOPBACK, cluster } = options;
  const folder = join(dataDir, "clickhouse");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { user, password } = access.worker;
  const headers = { Authorization: `Basic ${btoa(`${user}:${password}`)}` };
  const args = [
    `--config-file=${writeClickHouseConfig(join(folder, "server"), access, databases, { host, cluster })}`,
    `--path=${folder}`,
    `--http_port=${port}`,
    `--listen_host=${host}`,
    // `clickhouse local` exits after its last query, so the last query never ends.
    `--query=SYSTEM START LISTEN ${cluster === undefined ? "HTTP" : "QUERIES ALL"}; SELECT sleepEachRow(1) FROM system.numbers SETTINGS max_block_size = 1, max_threads = 1 FORMAT Null`,
  ];
  const program =
    executable === undefined
      ? { command: process.execPath, args: [here("clickhouse-server.ts"), library(), ...args] }
      : { command: executable, args: ["local", ...args] };
  return {
    name: "clickhouse",
    ...program,
    ready: async () => (await fetch(`http://${isAny(host) ? LOOPBACK : host}:${port}/?query=SELECT+1`, { headers })).ok,
  };
}

const isAny = (host: string): boolean => host === "0.0.0.0" || host === "::";

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

function library(): string {
  const require = createRequire(import.meta.url);
  try {
    return join(dirname(require.resolve(`@chdb/lib-linux-${process.arch}-gnu`)), "libchdb.so");
  } catch {
    throw new UserError(
      `npm has no ClickHouse for ${process.platform}-${process.arch}. Set CLICKHOUSE_BIN to a clickhouse executable, ` +
        'or CLICKHOUSE_URL to the URL of a running server (README.md, "Platforms").',
    );
  }
}
