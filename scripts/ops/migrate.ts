import { parseStoresEnv } from "../../src/env.ts";
import { print } from "../../src/programs/shared/cli.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "../../src/programs/stack/migrations.ts";
import { pendingTelemetry } from "../../src/programs/stack/pending-migrations.ts";

/** Migrates the stores that the environment names. Prints the destructive migrations that it leaves out. */
export async function migrateStores({ withDestructive }: { withDestructive: boolean }): Promise<void> {
  const config = parseStoresEnv(process.env);
  await migrateAccounts(config);
  await fillGazetteer(config);
  print("The accounts database is up to date.");
  const pending = withDestructive ? [] : await pendingTelemetry(config);
  const postponed = pending.flatMap(({ name, isDestructive }) => (isDestructive ? [name] : []));
  await migrateTelemetry(config, ({ name }) => !postponed.includes(name));
  if (postponed.length === 0) return print("ClickHouse is up to date.");
  print("ClickHouse is ready for this version. When the previous version no longer runs,");
  print(`npm run migrate -- --after-deploy applies ${postponed.join(", ")}.`);
}
