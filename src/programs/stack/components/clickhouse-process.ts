import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../../shared/cli.ts";
import type { Component } from "../supervisor.ts";
import { type ClickHouseAccess, writeClickHouseConfig } from "./clickhouse-access.ts";

export interface ClickHouseOptions {
  dataDir: string;
  port: number;
  access: ClickHouseAccess;
  /** The databases that its users may use. */
  databases: readonly string[];
  /** To run instead of the library from npm. */
  executable: string | undefined;
}

/**
 * ClickHouse's own HTTP server. From npm it comes as a library (libchdb), which a process of its own runs; where there is none
 * for the platform, an executable serves as well.
 */
export function clickhouseComponent({ dataDir, port, access, databases, executable }: ClickHouseOptions): Component {
  const folder = join(dataDir, "clickhouse");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { user, password } = access.worker;
  const headers = { Authorization: `Basic ${btoa(`${user}:${password}`)}` };
  const args = [
    `--config-file=${writeClickHouseConfig(join(folder, "server"), access, databases)}`,
    `--path=${folder}`,
    `--http_port=${port}`,
    "--listen_host=127.0.0.1",
    // `clickhouse local` ends with its last query, so that one never does.
    "--query=SYSTEM START LISTEN HTTP; SELECT sleepEachRow(1) FROM system.numbers SETTINGS max_block_size = 1, max_threads = 1 FORMAT Null",
  ];
  const program =
    executable === undefined
      ? { command: process.execPath, args: [here("clickhouse-server.ts"), library(), ...args] }
      : { command: executable, args: ["local", ...args] };
  return {
    name: "clickhouse",
    ...program,
    ready: async () => (await fetch(`http://127.0.0.1:${port}/?query=SELECT+1`, { headers })).ok,
  };
}

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

function library(): string {
  const require = createRequire(import.meta.url);
  try {
    return join(dirname(require.resolve(`@chdb/lib-linux-${process.arch}-gnu`)), "libchdb.so");
  } catch {
    throw new UserError(
      `There is no ClickHouse for ${process.platform}-${process.arch} among the installed packages. Set CLICKHOUSE_BIN to ` +
        'a clickhouse executable, or CLICKHOUSE_URL to a server that runs (README, "Platforms").',
    );
  }
}
