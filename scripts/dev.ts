import { DEV_DEFAULTS, devWorkerComponent } from "../src/programs/stack/components/worker-dev.ts";
import { runStack } from "../src/programs/stack/stack.ts";

await runStack({
  name: "npm run dev",
  summary: `Runs the whole product on this machine for development: the libSQL server, ClickHouse, the MQTT broker and the Worker (wrangler
    dev), which is rebuilt when its sources change. Data is kept in .data and survives a restart. Ctrl-C stops everything.`,
  startsWorkerLast: false,
  defaults: DEV_DEFAULTS,
  workerComponent: devWorkerComponent,
});
