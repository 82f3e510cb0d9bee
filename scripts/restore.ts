import { resolve } from "node:path";
import { parseCommand, print, UserError } from "../src/programs/shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../src/programs/shared/config-file.ts";
import { fillGazetteer } from "../src/programs/stack/migrations.ts";
import { restore } from "./ops/backup/restore.ts";
import { runStoreCommand, withStores } from "./ops/backup/stores.ts";

await runStoreCommand(async (signal) => {
  const command = parseCommand({
    name: "npm run restore",
    arguments: "<folder>",
    summary: `Restores a backup and migrates it to this version. Writes to the data folder of a stopped product (DATA_DIR), or to the stores
      that LIBSQL_URL and CLICKHOUSE_URL name; no service may use them. Verifies all checksums before it changes anything.`,
    options: {
      replace: { type: "boolean", description: "Delete the data in the stores first" },
      "with-secrets": { type: "boolean", description: "Restore the secrets too, to DATA_DIR/secrets.json" },
      ...CONFIG_OPTION,
    },
    notes: "If a restore is interrupted, no service starts on these stores until you run it again with --replace.",
  });
  if (command === undefined) return;
  const { values, positionals } = command;
  loadConfiguration(values.config);
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1)
    throw new UserError("Name the folder of the backup. See npm run restore -- --help.");
  const { replace, "with-secrets": withSecrets } = values;
  await withStores("writing", async (stores) => {
    await restore(stores, resolve(folder), { replace, withSecrets, signal });
    await fillGazetteer(stores.config);
  });
  print("Restored.");
});
