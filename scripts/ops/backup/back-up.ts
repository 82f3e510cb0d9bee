import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { print, UserError } from "../../../src/programs/shared/cli.ts";
import { ROOT } from "../../../src/programs/shared/system.ts";
import { dumpAccounts, openAccounts } from "./account-rows.ts";
import { sayTable } from "./command.ts";
import { filesOf, type Manifest, writeManifest } from "./manifest.ts";
import { dumpSecrets } from "./secret-file.ts";
import type { Stores } from "./stores.ts";
import { dumpTelemetry } from "./telemetry-tables.ts";

export interface BackUpOptions {
  withSecrets?: boolean;
  signal: AbortSignal;
}

/** Writes a backup into a new folder, which is there only when it is whole. */
export async function backUp(stores: Stores, folder: string, options: BackUpOptions): Promise<void> {
  if (existsSync(folder)) throw new UserError(`${folder} is there already. Name a new one.`);
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
    // Accounts first: what the telemetry is of is then known, or was deleted meanwhile.
    const accounts = await dumpAccounts(client, folder, signal);
    accounts.tables.forEach(sayTable);
    const telemetry = await dumpTelemetry(stores.config, folder, signal);
    telemetry.tables.forEach(sayTable);
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
    const bytes = filesOf(manifest).reduce((sum, file) => sum + file.bytes, 0);
    print(
      `${(bytes / 1024 / 1024).toFixed(1)} MiB in ${((Date.parse(finishedAt) - Date.parse(startedAt)) / 1000).toFixed(1)} s.`,
    );
  } finally {
    client.close();
  }
}
