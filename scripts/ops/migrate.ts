import { parseStoresEnv, type StoresConfig } from "../../src/env.ts";
import { print } from "../../src/programs/shared/cli.ts";
import { fillGazetteer, migrateAccounts } from "../../src/programs/stack/migrations.ts";
import { pendingTelemetry } from "../../src/programs/stack/pending-migrations.ts";
import { migrateTelemetry } from "../../src/programs/telemetry-store/migrate.ts";

/** Migrates the stores that the environment names. Prints the destructive migrations that it leaves out. */
export async function migrateFromEnvironment({ withDestructive }: { withDestructive: boolean }): Promise<void> {
  const config = parseStoresEnv(process.env);
  const pending = withDestructive ? [] : await pendingTelemetry(config);
  const postponed = pending.flatMap(({ name, isDestructive }) => (isDestructive ? [name] : []));
  await migrateStores(config, postponed);
  print("The accounts database is up to date.");
  if (postponed.length === 0) return print("ClickHouse is up to date.");
  print("ClickHouse is ready for this version. When the previous version no longer runs,");
  print(`npm run migrate -- --after-deploy applies ${postponed.join(", ")}.`);
}

/** Migrates the accounts database, then ClickHouse. Leaves out the migrations of ClickHouse in `postponed`. */
export async function migrateStores(config: StoresConfig, postponed: readonly string[]): Promise<void> {
  await migrateAccounts(config);
  await fillGazetteer(config);
  await migrateTelemetry(config, ({ name }) => !postponed.includes(name));
}
