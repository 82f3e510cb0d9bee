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
 * An accounts database with all migrations and towns, made once for all projects. Loading the towns takes several seconds, and a
 * dozen tests start a database. The first project that asks for the image makes it; vitest sets up one project after the other.
 */
export async function databaseImage({ vitest }: TestProject): Promise<{ folder: string; remove(): void }> {
  const root = vitest.getRootProject();
  const { databaseImage: known } = root.getProvidedContext();
  if (known !== undefined) return { folder: known, remove: () => {} };
  const folder = mkdtempSync(join(tmpdir(), "controller-image-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const supervisor = new Supervisor();
  try {
    const port = await anyFreePort();
    // As the stack does it: what sqld writes is for this user alone.
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

/** Puts the database into a folder in which the stack, or sqld alone, has not run yet. */
export function copyImage(image: string, dataDir: string): void {
  // The modes of folders are not copied.
  const umask = process.umask(0o077);
  cpSync(join(image, "sqld"), join(dataDir, "sqld"), { recursive: true });
  process.umask(umask);
}

/** Makes a data folder in which the accounts database is ready. */
export function dataFolderWith(image: string): string {
  const dataDir = mkdtempSync(join(tmpdir(), "controller-data-"));
  markFolder(dataDir);
  copyImage(image, dataDir);
  return dataDir;
}

export default async function makeImage(project: TestProject): Promise<() => void> {
  return (await databaseImage(project)).remove;
}
