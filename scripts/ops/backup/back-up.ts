import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { dumpAccounts, openAccounts } from "./account-rows.ts";
import { filesOf, type Manifest, printTable, writeManifest } from "./manifest.ts";
import { dumpSecrets } from "./secret-file.ts";
import type { Stores } from "./stores.ts";
import { dumpTelemetry } from "./telemetry-tables.ts";

export interface BackUpOptions {
  withSecrets?: boolean;
  signal: AbortSignal;
}

/** Writes a backup into a new folder. The folder gets its final name only when the backup is complete. */
export async function backUp(stores: Stores, folder: string, options: BackUpOptions): Promise<void> {
  if (existsSync(folder)) throw new UserError(`${folder} already exists. Choose another folder.`);
  const draft = `${folder}.partial`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true, mode: 0o700 });
  try {
    await dump(stores, draft, options);
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
}

async function dump(stores: Stores, folder: string, { withSecrets = false, signal }: BackUpOptions): Promise<void> {
  const startedAt = new Date().toISOString();
  const client = openAccounts(stores.config);
  try {
    // Accounts first: the telemetry then contains everything that the agents in the backup had sent by that moment.
    const accounts = await dumpAccounts(client, folder, signal);
    accounts.tables.forEach(printTable);
    const telemetry = await dumpTelemetry(stores.config, folder, signal);
    telemetry.tables.forEach(printTable);
    const secrets = withSecrets ? dumpSecrets(stores.secretsFile, folder) : undefined;
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
    const finishedAt = new Date().toISOString();
    const manifest: Manifest = {
      format: 1,
      version,
      startedAt,
      finishedAt,
      accounts,
      telemetry,
      ...(secrets && { secrets }),
    };
    writeManifest(folder, manifest);
    const mebibytes = filesOf(manifest).reduce((sum, file) => sum + file.bytes, 0) / 1024 / 1024;
    const seconds = (Date.parse(finishedAt) - Date.parse(startedAt)) / 1000;
    print(`${mebibytes.toFixed(1)} MiB in ${seconds.toFixed(1)} s.`);
  } finally {
    client.close();
  }
}
