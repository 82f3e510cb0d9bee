import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../../../src/programs/shared/config-file.ts";
import { fillGazetteer } from "../../../src/programs/stack/migrations.ts";
import { runStoreCommand } from "./command.ts";
import { restore } from "./restore.ts";
import { withStores } from "./stores.ts";

const HELP = `npm run restore -- <folder> [--replace] [--with-secrets]

Brings a backup back, and up to date with this version: into the data folder of a product that does not run (DATA_DIR), or into the
stores that LIBSQL_URL and CLICKHOUSE_URL name, which no service may be using. Every checksum is looked at before anything is touched.

  --replace         although there is something in the stores: it is gone afterwards
  --with-secrets    the secrets of the backup as well, into DATA_DIR/secrets.json
  ${CONFIG_HELP}

A restore that was cut off leaves the stores marked: no service starts on them until it has been run again, with --replace.`;

async function main(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...CONFIG_OPTION,
      help: { type: "boolean", short: "h" },
      replace: { type: "boolean", default: false },
      "with-secrets": { type: "boolean", default: false },
    },
  });
  const [folder] = positionals;
  if (values.help) return print(HELP);
  loadConfiguration(values.config);
  if (folder === undefined || positionals.length > 1) throw new UserError("Name the folder of the backup. Try --help.");
  await withStores("writing", async (stores) => {
    await restore(stores, resolve(folder), { replace: values.replace, withSecrets: values["with-secrets"], signal });
    await fillGazetteer(stores.config);
  });
  print("Restored.");
}

await runStoreCommand(main);
