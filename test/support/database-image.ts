import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { parseStoresEnv } from "../../src/env.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { markFolder } from "../../src/programs/stack/data-folder.ts";
import { fillGazetteer, migrateAccounts } from "../../src/programs/stack/migrations.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";

/**
 * Returns a folder with an accounts database that has all migrations and towns. Loading the towns takes several seconds, and a dozen
 * tests start a database. The first project creates the image for all of them, because vitest sets up the projects in turn.
 */
export async function databaseImage({ vitest }: TestProject): Promise<{ folder: string; remove(): void }> {
  const root = vitest.getRootProject();
  const { databaseImage: existing } = root.getProvidedContext();
  if (existing !== undefined) return { folder: existing, remove: () => {} };
  const folder = mkdtempSync(join(tmpdir(), "controller-image-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const supervisor = new Supervisor();
  try {
    const port = await anyFreePort();
    // Same as the stack: other users must not read the files of sqld.
    const umask = process.umask(0o077);
    const started = supervisor.start(sqldComponent(folder, port));
    process.umask(umask);
    await started;
    const config = parseStoresEnv({ LIBSQL_URL: `http://127.0.0.1:${port}`, CLICKHOUSE_URL: "http://127.0.0.1" });
    await migrateAccounts(config);
    await fillGazetteer(config);
    await supervisor.stop();
    root.provide("databaseImage", folder);
    return { folder, remove };
  } catch (error) {
    await supervisor.stop();
    remove();
    throw error;
  }
}

/** Copies the database to a folder that neither the stack nor sqld has used yet. */
export function copyImage(image: string, dataDir: string): void {
  // `cpSync` does not copy the modes of folders.
  const umask = process.umask(0o077);
  cpSync(join(image, "sqld"), join(dataDir, "sqld"), { recursive: true });
  process.umask(umask);
}

/** Creates a data folder that contains the accounts database. */
export function dataFolderWith(image: string): string {
  const dataDir = mkdtempSync(join(tmpdir(), "controller-data-"));
  markFolder(dataDir);
  copyImage(image, dataDir);
  return dataDir;
}

export default async function makeImage(project: TestProject): Promise<() => void> {
  return (await databaseImage(project)).remove;
}
