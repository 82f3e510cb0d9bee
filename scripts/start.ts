import { runStack } from "./stack/stack.ts";
import { productionWorkerPart } from "./stack/worker-production.ts";

await runStack({
  help: `npm start [-- --reset]

Runs the product in its production form on this machine: the libSQL server, ClickHouse, the MQTT broker and the Worker, built once
and run on plain workerd. Data is kept in .data and survives a restart. Ctrl-C or SIGTERM stops everything.

  --reset   start with empty stores and new keys
  --help    show this text

Settings come from the environment: PORT, HOST, DATA_DIR, ADMIN_USERNAME, ADMIN_PASSWORD, MQTT_PORT, MQTT_WS_PORT, LIBSQL_URL,
CLICKHOUSE_URL, MQTT_URL and more; README.md, "Settings", explains them.`,
  workerPart: productionWorkerPart,
});
