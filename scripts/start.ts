import { productionWorkerComponent } from "../src/programs/stack/components/worker-production.ts";
import { inheritedSocket } from "../src/programs/stack/inherited-socket.ts";
import { runStack } from "../src/programs/stack/stack.ts";

await runStack({
  name: "npm start",
  summary: `Runs the whole product on this machine for production: the libSQL server, ClickHouse, the MQTT broker and the Worker, built once
    and run on plain workerd. Data is kept in .data and survives a restart. Ctrl-C or SIGTERM stops everything.`,
  socket: () => inheritedSocket(process.env),
  startsWorkerLast: true,
  workerComponent: productionWorkerComponent,
});
