import { print, red, UserError } from "../../../src/programs/shared/cli.ts";
import { migrateAccounts, migrateTelemetry } from "../../../src/programs/stack/migrations.ts";
import {
  beginRestore,
  checkAccountsLevel,
  endRestore,
  loadAccounts,
  openAccounts,
  presentAccounts,
} from "./account-rows.ts";
import { verifyFile } from "./backup-files.ts";
import { sayTable } from "./command.ts";
import { filesOf, readManifest } from "./manifest.ts";
import { hasOtherSecrets, loadSecretsFile, readableKeys } from "./secret-file.ts";
import type { Stores } from "./stores.ts";
import { checkTelemetryLevel, loadTelemetry, presentTelemetry } from "./telemetry-tables.ts";

export interface RestoreOptions {
  replace?: boolean;
  withSecrets?: boolean;
  signal: AbortSignal;
}

/**
 * Brings a backup back into stores that nobody uses, and up to date. Every file is looked at before anything is touched; from there on
 * to the end the stores are marked, lest half of it is taken for a whole.
 */
export async function restore(
  { config, secretsFile }: Stores,
  folder: string,
  { replace = false, withSecrets = false, signal }: RestoreOptions,
): Promise<void> {
  const manifest = readManifest(folder);
  const { accounts, telemetry, startedAt, version } = manifest;
  if (withSecrets && manifest.secrets === undefined) throw new UserError("There are no secrets in this backup.");
  checkAccountsLevel(accounts);
  checkTelemetryLevel(config, telemetry);
  print(`A backup of ${startedAt}, by version ${version}. Looking at its checksums.`);
  for (const file of filesOf(manifest)) await verifyFile(folder, file, signal);
  const client = openAccounts(config);
  try {
    const present = { accounts: await presentAccounts(client, accounts), telemetry: await presentTelemetry(config) };
    if (!(replace || (present.accounts.isEmpty && present.telemetry.isEmpty)))
      throw new UserError("There is something in the stores already. With --replace it goes.");
    if (withSecrets && !replace && hasOtherSecrets(secretsFile, folder))
      throw new UserError(`There are other secrets in ${secretsFile}. With --replace they go.`);

    await beginRestore(client);
    await loadTelemetry(config, folder, telemetry, present.telemetry.tables, { startedAt, signal, onTable: sayTable });
    await loadAccounts(client, folder, accounts, present.accounts.tables, signal);
    accounts.tables.forEach(sayTable);
    if (withSecrets) loadSecretsFile(secretsFile, folder);
    await endRestore(client);
    await migrateTelemetry(config);
    await migrateAccounts(config);
    sayWhetherKeysFit(await readableKeys(client, secretsFile));
  } finally {
    client.close();
  }
}

function sayWhetherKeysFit(keys: Awaited<ReturnType<typeof readableKeys>>): void {
  if (keys === undefined)
    print("There are no secrets here yet: bring secrets.json of the former service before it starts.");
  else if (keys.readable < keys.all)
    print(
      red(
        `Only ${keys.readable} of ${keys.all} api keys can be read: these are not the secrets of the former service.`,
      ),
    );
  else print(`All ${keys.all} api keys can be read.`);
}
