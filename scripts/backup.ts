import { resolve } from "node:path";
import { parseCommand, print, UserError } from "../src/programs/shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../src/programs/shared/config-file.ts";
import { backUp } from "./ops/backup/back-up.ts";
import { runStoreCommand, withStores } from "./ops/backup/stores.ts";

await runStoreCommand(async (signal) => {
  const command = parseCommand({
    name: "npm run backup",
    arguments: "<folder>",
    summary: `Backs up the accounts and the telemetry into a new folder, compressed and with checksums. The service can keep running. Backs
      up the product on this machine (DATA_DIR), or the stores that LIBSQL_URL and CLICKHOUSE_URL name.`,
    options: {
      "with-secrets": {
        type: "boolean",
        description: "Include DATA_DIR/secrets.json; the backup then contains every key",
      },
      ...CONFIG_OPTION,
    },
    notes: `Without secrets.json, nothing can decrypt the apps' API keys after a restore: keep a copy of it. docs/operations.md lists
      what a backup contains.`,
  });
  if (command === undefined) return;
  const { values, positionals } = command;
  loadConfiguration(values.config);
  const [name] = positionals;
  if (name === undefined || positionals.length > 1)
    throw new UserError("Name one folder for the backup. See npm run backup -- --help.");
  const folder = resolve(name);
  const withSecrets = values["with-secrets"];
  await withStores("reading", (stores) => backUp(stores, folder, { withSecrets, signal }));
  print(`The backup is in ${folder}.`);
  if (!withSecrets) print("It does not contain secrets.json. Keep a copy: without it, API keys cannot be decrypted.");
});
