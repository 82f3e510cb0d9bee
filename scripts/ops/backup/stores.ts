import { join } from "node:path";
import { parseStoresEnv, type StoresConfig } from "../../../src/env.ts";
import { print, runCommand, toUserError, UserError } from "../../../src/programs/shared/cli.ts";
import { readSettings } from "../../../src/programs/shared/settings.ts";
import {
  newClickHouseAccess,
  settingsOfUrl,
  withLogin,
} from "../../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../../src/programs/stack/components/clickhouse-process.ts";
import { newSqldAccess, sqldComponent } from "../../../src/programs/stack/components/sqld.ts";
import { openDataFolder, readUrls } from "../../../src/programs/stack/data-folder.ts";
import { anyFreePort } from "../../../src/programs/stack/ports.ts";
import { Supervisor } from "../../../src/programs/stack/supervisor.ts";

export interface Stores {
  config: StoresConfig;
  /** The secrets of the product on this machine. The file may not exist yet. */
  secretsFile: string;
}

/** Runs a command on the stores. Ctrl-C aborts the signal, and the command ends when it has cleaned up. */
export async function runStoreCommand(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
  await runCommand(async () => {
    try {
      await work(stop.signal);
    } catch (error) {
      throw stop.signal.aborted ? new UserError("Interrupted.") : toUserError(error);
    }
  });
  // Aborted streams may still hold a connection, which would keep the process alive.
  process.exit();
}

/**
 * Passes on the stores that the settings name, or those of the product that runs on the data folder. If there are none, starts the stores
 * of the data folder until the work ends. Rejects "writing" while a product uses the data folder.
 */
export async function withStores(use: "reading" | "writing", work: (stores: Stores) => Promise<void>): Promise<void> {
  const { dataDir, libsqlUrl, clickhouseUrl, clickhouseBin } = readSettings(process.env);
  const secretsFile = join(dataDir, "secrets.json");
  const configOf = (libsql: string | undefined, clickhouse: string | undefined) =>
    parseStoresEnv({
      ...process.env,
      LIBSQL_URL: libsql,
      ...(clickhouse !== undefined && settingsOfUrl(clickhouse)),
    });
  const running = readUrls(dataDir);
  if (running !== undefined && use === "writing" && (libsqlUrl === undefined || clickhouseUrl === undefined))
    throw new UserError(`A product is running on ${dataDir}. Stop it first.`);
  if (running !== undefined || (libsqlUrl !== undefined && clickhouseUrl !== undefined)) {
    const config = configOf(libsqlUrl ?? running?.libsql, clickhouseUrl ?? running?.clickhouse);
    return await work({ config, secretsFile });
  }

  print(`Starting the stores of ${dataDir}.`);
  // Only this user may read the files of the stores, as when the product runs them.
  process.umask(0o077);
  const folder = openDataFolder(dataDir, { reset: false });
  const supervisor = new Supervisor(() => folder.record(supervisor.pids, {}));
  try {
    const [sqld, port, sqldAccess] = await Promise.all([anyFreePort(), anyFreePort(), newSqldAccess()]);
    const access = newClickHouseAccess();
    if (libsqlUrl === undefined) await supervisor.start(sqldComponent(dataDir, sqld, sqldAccess.publicKey));
    const config = configOf(
      libsqlUrl ?? `http://127.0.0.1:${sqld}?authToken=${sqldAccess.token}`,
      clickhouseUrl ?? withLogin(`http://127.0.0.1:${port}`, access.owner),
    );
    if (clickhouseUrl === undefined) {
      const databases = [config.CLICKHOUSE_DATABASE];
      await supervisor.start(clickhouseComponent({ dataDir, port, access, databases, executable: clickhouseBin }));
    }
    await Promise.race([work({ config, secretsFile }), supervisor.fatal]);
  } finally {
    await supervisor.stop();
    folder.release();
  }
}
