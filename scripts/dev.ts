import { CONFIG_HELP } from "../src/programs/shared/config-file.ts";
import { DEV_DEFAULTS, devWorkerComponent } from "../src/programs/stack/components/worker-dev.ts";
import { runStack } from "../src/programs/stack/stack.ts";

await runStack({
  help: `npm run dev [-- <options>]

Runs the whole product on this machine: the libSQL server, ClickHouse, the MQTT broker and the Worker (wrangler dev).
Data is kept in .data and survives a restart. Ctrl-C stops everything.

  ${CONFIG_HELP}
  --reset           start with empty stores and new keys
  --help            show this text

Settings are PORT, HOST, DATA_DIR, ADMIN_USERNAME, ADMIN_PASSWORD, MQTT_PORT, MQTT_WS_PORT, LIBSQL_URL, CLICKHOUSE_URL, MQTT_URL and
more; README.md, "Settings", explains them, and docs/self-hosting/controller.conf is a file with all of them.`,
  opensLast: false,
  defaults: DEV_DEFAULTS,
  workerComponent: devWorkerComponent,
});
