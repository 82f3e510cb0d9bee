import { CONFIG_HELP } from "../src/programs/shared/config-file.ts";
import { productionWorkerComponent } from "../src/programs/stack/components/worker-production.ts";
import { inheritedSocket } from "../src/programs/stack/inherited-socket.ts";
import { runStack } from "../src/programs/stack/stack.ts";

await runStack({
  help: `npm start [-- <options>]

Runs the product in its production form on this machine: the libSQL server, ClickHouse, the MQTT broker and the Worker, built once
and run on plain workerd. Data is kept in .data and survives a restart. Ctrl-C or SIGTERM stops everything.

  ${CONFIG_HELP}
  --reset           start with empty stores and new keys
  --help            show this text

Settings are PORT, HOST, DATA_DIR, ADMIN_USERNAME, ADMIN_PASSWORD, MQTT_PORT, MQTT_WS_PORT, LIBSQL_URL, CLICKHOUSE_URL, MQTT_URL and
more; README.md, "Settings", explains them, and docs/self-hosting/controller.conf is a file with all of them.`,
  socket: () => inheritedSocket(process.env),
  opensLast: true,
  workerComponent: productionWorkerComponent,
});
