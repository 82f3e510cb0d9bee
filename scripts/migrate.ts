import { parseCommand, runCommand, toUserError } from "../src/programs/shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../src/programs/shared/config-file.ts";
import { migrateFromEnvironment } from "./ops/migrate.ts";

await runCommand(async () => {
  const command = parseCommand({
    name: "npm run migrate",
    summary: `Migrates the stores that the settings name to this version, and sets the retention of telemetry. Skips migrations that are
      already applied. npm run dev and npm start do the same by themselves.

      Leaves out destructive migrations, which remove something that the previous version may still use, unless the store is new.`,
    options: {
      "after-deploy": {
        type: "boolean",
        description:
          "Apply destructive migrations too; only when no instance of the previous version runs (docs/operations.md)",
      },
      ...CONFIG_OPTION,
    },
    sections: {
      Settings: {
        "LIBSQL_URL, LIBSQL_AUTH_TOKEN": "Accounts database",
        "CLICKHOUSE_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD": "ClickHouse",
        "CLICKHOUSE_DATABASE, CLICKHOUSE_CLUSTER": "Database in ClickHouse, and its cluster if it has one",
        "CLICKHOUSE_REPLICATION, CLICKHOUSE_SHARDS": "The kind of that cluster (docs/telemetry.md)",
        "TELEMETRY_DAYS, ROLLUP_DAYS": "Retention of points and texts, and of rollups",
      },
    },
  });
  if (command === undefined) return;
  loadConfiguration(command.values.config);
  await migrateFromEnvironment({ withDestructive: command.values["after-deploy"] }).catch((error: unknown) => {
    throw toUserError(error);
  });
});
