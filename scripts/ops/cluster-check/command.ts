import { parseCommand, runCommand, toUserError } from "../../../src/programs/shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../../../src/programs/shared/config-file.ts";
import { CLEANUP_NOTICE, interruption, isInterruption } from "../../../src/programs/shared/interruption.ts";
import { runClusterCheck } from "./cluster-check.ts";

await runCommand(async () => {
  const command = parseCommand({
    name: "npm run cluster-check",
    summary: `Checks a ClickHouse cluster as the service uses it, in about ten minutes. Writes samples to each shard, asks you to kill and
      start one node after the other, and compares what each node has with what was acknowledged: nothing may be missing or duplicated,
      and each write must be readable at once.

      Works in a database of its own, <CLICKHOUSE_DATABASE>_check, which it deletes before and after. Telemetry of the service is not
      touched, but the service has less of the cluster while you stop nodes. Ctrl-C deletes the database and ends the check.`,
    options: {
      seconds: {
        type: "number",
        value: "n",
        description: "Write so long before each comparison, and while a node is stopped",
        default: 30,
        min: 1,
        max: 600,
      },
      "without-kills": { type: "boolean", description: "Only write and compare; ask for nothing" },
      ...CONFIG_OPTION,
    },
    sections: {
      Settings: {
        CLICKHOUSE_URL: "The addresses of all nodes, separated by commas",
        "CLICKHOUSE_USER, CLICKHOUSE_PASSWORD": "A login that may create databases",
        "CLICKHOUSE_CLUSTER, CLICKHOUSE_REPLICATION, CLICKHOUSE_INSERT_QUORUM": "As for the service",
      },
    },
  });
  if (command === undefined) return;
  const { values } = command;
  loadConfiguration(values.config);
  const options = { seconds: values.seconds, hasKills: !values["without-kills"], signal: interruption(CLEANUP_NOTICE) };
  const isKept = await runClusterCheck(process.env, options).catch((error: unknown) => {
    throw isInterruption(error) ? error : toUserError(error);
  });
  if (!isKept) process.exitCode = 1;
});
// The input stays open otherwise.
process.exit();
