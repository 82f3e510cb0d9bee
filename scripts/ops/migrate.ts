import { parseArgs } from "node:util";
import { parseStoresEnv } from "../../src/env.ts";
import { print, runCommand, toUserError } from "../../src/programs/shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../../src/programs/shared/config-file.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "../../src/programs/stack/migrations.ts";
import { pendingTelemetry } from "../../src/programs/stack/pending-migrations.ts";

const HELP = `npm run migrate [-- <options>]

Brings the stores that the settings name up to date: LIBSQL_URL (LIBSQL_AUTH_TOKEN) and CLICKHOUSE_URL (CLICKHOUSE_USER,
CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE; CLICKHOUSE_CLUSTER for a cluster), and sets how long telemetry is kept there
(TELEMETRY_DAYS, ROLLUP_DAYS). What is applied already is left alone. \`npm run dev\` and \`npm start\` do all of this by themselves.

What would take away something that the version before may still use is left for later, unless the store is new:

  --after-deploy    apply that as well; only when no instance of the version before is in service (docs/operations.md)
  ${CONFIG_HELP}`;

const OPTIONS = {
  ...CONFIG_OPTION,
  help: { type: "boolean", short: "h", default: false },
  "after-deploy": { type: "boolean", default: false },
} as const;

async function migrate(withLater: boolean): Promise<void> {
  const config = parseStoresEnv(process.env);
  await migrateAccounts(config);
  await fillGazetteer(config);
  print("The accounts database is up to date.");
  const pending = withLater ? [] : await pendingTelemetry(config);
  const later = pending.flatMap(({ name, isDestructive }) => (isDestructive ? [name] : []));
  await migrateTelemetry(config, ({ name }) => !later.includes(name));
  if (later.length === 0) return print("ClickHouse is up to date.");
  print("ClickHouse is ready for this version. When the one before is out of service,");
  print(`npm run migrate -- --after-deploy applies ${later.join(", ")}.`);
}

await runCommand(async () => {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) return print(HELP);
  loadConfiguration(values.config);
  await migrate(values["after-deploy"]).catch((error: unknown) => {
    throw toUserError(error);
  });
});
