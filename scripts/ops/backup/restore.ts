import { print, red, UserError } from "../../../src/programs/shared/cli.ts";
import { migrateAccounts } from "../../../src/programs/stack/migrations.ts";
import { markRestoreFinished, markRestoreStarted } from "../../../src/programs/stack/restore-mark.ts";
import { migrateTelemetry } from "../../../src/programs/telemetry-store/migrate.ts";
import { checkAccountsVersion, findAccountTables, loadAccounts, openAccounts } from "./account-rows.ts";
import { verifyFile } from "./backup-files.ts";
import { filesOf, printTable, readManifest } from "./manifest.ts";
import { countReadableKeys, hasOtherSecrets, restoreSecrets } from "./secret-file.ts";
import type { Stores } from "./stores.ts";
import { checkTelemetryVersion, findTelemetryTables, loadTelemetry } from "./telemetry-tables.ts";

export interface RestoreOptions {
  replace?: boolean;
  withSecrets?: boolean;
  signal: AbortSignal;
}

/**
 * Restores a backup into stores that no service uses, and migrates them to this version. Verifies every file before it changes anything.
 * From then until the end the stores are marked, so that no service starts on incomplete stores.
 */
export async function restore(
  { config, secretsFile }: Stores,
  folder: string,
  { replace = false, withSecrets = false, signal }: RestoreOptions,
): Promise<void> {
  const manifest = readManifest(folder);
  const { accounts, telemetry, startedAt, version } = manifest;
  if (withSecrets && manifest.secrets === undefined)
    throw new UserError("This backup contains no secrets. Omit --with-secrets.");
  checkAccountsVersion(accounts);
  checkTelemetryVersion(config, telemetry);
  print(`Verifying the checksums of the backup of ${startedAt} by version ${version}.`);
  for (const file of filesOf(manifest)) await verifyFile(folder, file, signal);
  const client = openAccounts(config);
  try {
    const existing = {
      accounts: await findAccountTables(client, accounts),
      telemetry: await findTelemetryTables(config),
    };
    if (!(replace || (existing.accounts.isEmpty && existing.telemetry.isEmpty)))
      throw new UserError("The stores are not empty. To delete their data, pass --replace.");
    if (withSecrets && !replace && hasOtherSecrets(secretsFile, folder))
      throw new UserError(`${secretsFile} contains other secrets. To delete them, pass --replace.`);

    await markRestoreStarted(client);
    await loadTelemetry(config, folder, telemetry, existing.telemetry.tables, {
      startedAt,
      signal,
      onTable: printTable,
    });
    await loadAccounts(client, folder, accounts, existing.accounts.tables, signal);
    accounts.tables.forEach(printTable);
    if (withSecrets) restoreSecrets(secretsFile, folder);
    await markRestoreFinished(client);
    await migrateTelemetry(config);
    await migrateAccounts(config);
    printKeyCheck(await countReadableKeys(client, secretsFile));
  } finally {
    client.close();
  }
}

function printKeyCheck(keys: Awaited<ReturnType<typeof countReadableKeys>>): void {
  if (keys === undefined) {
    print("There is no secrets.json yet. Copy the one of the backed-up service here before you start the service.");
  } else if (keys.readable < keys.total) {
    const count = `Only ${keys.readable} of ${keys.total} API keys are readable`;
    print(red(`${count}: these are not the secrets of the backed-up service. Copy its secrets.json here.`));
  } else print(`All ${keys.total} API keys are readable.`);
}
