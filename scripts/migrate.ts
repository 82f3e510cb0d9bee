import { parseArgs } from "node:util";
import { BadConfiguration, parseStoresEnv } from "../src/env.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "./stack/configuration.ts";
import { Refused, red, say } from "./stack/console.ts";
import { fillGazetteer, migrateAccounts, migrateTelemetry } from "./stack/migrations.ts";

const HELP = `npm run migrate [-- <options>]

Brings the stores that the settings name up to date: LIBSQL_URL (LIBSQL_AUTH_TOKEN) and CLICKHOUSE_URL (CLICKHOUSE_USER,
CLICKHOUSE_PASSWORD, CLICKHOUSE_DATABASE; CLICKHOUSE_CLUSTER for a cluster), and sets how long telemetry is kept there
(TELEMETRY_DAYS, ROLLUP_DAYS). What is applied already is left alone. \`npm run dev\` and \`npm start\` do this by themselves.

  ${CONFIG_HELP}`;

try {
  const { values } = parseArgs({
    options: { help: { type: "boolean", short: "h", default: false }, ...CONFIG_OPTION },
  });
  if (values.help) say(HELP);
  else {
    loadConfiguration(values.config);
    const config = parseStoresEnv(process.env);
    await migrateAccounts(config);
    await fillGazetteer(config);
    say("The accounts database is up to date.");
    await migrateTelemetry(config);
    say("ClickHouse is up to date.");
  }
} catch (error) {
  if (!(error instanceof Refused || error instanceof BadConfiguration)) throw error;
  say(red(error.message));
  process.exitCode = 1;
}
