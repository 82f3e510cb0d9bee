import { join } from "node:path";
import { parseStoresEnv, type StoresConfig } from "../../../src/env.ts";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
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
  /** Where this machine's product keeps, or would keep, its secrets. */
  secretsFile: string;
}

/**
 * Finds the stores: those that the settings name; else those of a product that runs on the data folder; else the data folder's own,
 * started for as long as this takes. Whoever writes wants nobody else there.
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
    throw new UserError(`A product runs on ${dataDir}. Stop it first.`);
  if (running !== undefined || (libsqlUrl !== undefined && clickhouseUrl !== undefined)) {
    const config = configOf(libsqlUrl ?? running?.libsql, clickhouseUrl ?? running?.clickhouse);
    return await work({ config, secretsFile });
  }

  print(`Starting the stores of ${dataDir} for the while.`);
  // As the product itself does: what the stores write is for this user's eyes only.
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
