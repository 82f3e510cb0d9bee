import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../../../src/programs/shared/config-file.ts";
import { backUp } from "./back-up.ts";
import { runStoreCommand } from "./command.ts";
import { withStores } from "./stores.ts";

const HELP = `npm run backup -- <folder> [--with-secrets]

Writes the accounts and the telemetry into a new folder, while the service runs: compressed, with checksums. Of the product on this
machine (DATA_DIR), or of the stores that LIBSQL_URL and CLICKHOUSE_URL name.

  --with-secrets    DATA_DIR/secrets.json as well: whoever gets hold of the backup then has every key
  ${CONFIG_HELP}

Without those secrets, api keys and tokens cannot be read again: keep them somewhere, too. What else is and is not in a backup:
docs/operations.md.`;

async function main(signal: AbortSignal): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...CONFIG_OPTION,
      help: { type: "boolean", short: "h" },
      "with-secrets": { type: "boolean", default: false },
    },
  });
  const [name] = positionals;
  if (values.help) return print(HELP);
  loadConfiguration(values.config);
  if (name === undefined || positionals.length > 1) throw new UserError("Name one folder for the backup. Try --help.");
  const folder = resolve(name);
  const withSecrets = values["with-secrets"];
  await withStores("reading", (stores) => backUp(stores, folder, { withSecrets, signal }));
  print(`The backup is in ${folder}.`);
  if (!withSecrets)
    print("The service's secrets (secrets.json) are not in it: keep them too, or nobody can read api keys again.");
}

await runStoreCommand(main);
