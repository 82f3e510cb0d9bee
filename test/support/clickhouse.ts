import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type ClickHouseAccess, OWNER, WORKER } from "../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../src/programs/stack/components/clickhouse-process.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { SECRET_MARK } from "./secret-mark.ts";

/** The users of the shared server have rights on these databases only, as in production. */
const DATABASES = [
  "controller",
  "backed_up",
  "restored",
  "nothing",
  "migrated",
  "deployed",
  "guarded",
  "repartitioned",
  "received",
  "network",
  "unsharded",
];

const ACCESS: ClickHouseAccess = {
  owner: { user: OWNER, password: `${SECRET_MARK}-clickhouse-owner` },
  worker: { user: WORKER, password: `${SECRET_MARK}-clickhouse-worker` },
};

/**
 * Returns one ClickHouse for the tests of all projects, because no other component takes as long to start. Each test uses its own
 * database. Vitest sets up the projects in turn and tears them down after the last test, so the first project starts the server.
 */
export async function sharedClickHouse({ vitest }: TestProject) {
  const root = vitest.getRootProject();
  const { clickhouseUrl } = root.getProvidedContext();
  if (clickhouseUrl !== undefined)
    return { url: clickhouseUrl, access: ACCESS, start: async () => {}, stop: async () => {} };
  const folder = mkdtempSync(join(tmpdir(), "controller-clickhouse-"));
  const supervisor = new Supervisor();
  const port = await anyFreePort();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    access: ACCESS,
    start: async () => {
      const executable = process.env.CLICKHOUSE_BIN;
      await supervisor.start(
        clickhouseComponent({ dataDir: folder, port, access: ACCESS, databases: DATABASES, executable }),
      );
      root.provide("clickhouseUrl", url);
      root.provide("clickhouseAccess", ACCESS);
    },
    stop: async () => {
      await supervisor.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts ClickHouse for projects that need no other component before their tests. */
export default async function startClickHouse(project: TestProject): Promise<() => Promise<void>> {
  const clickhouse = await sharedClickHouse(project);
  try {
    await clickhouse.start();
    return clickhouse.stop;
  } catch (error) {
    await clickhouse.stop();
    throw error;
  }
}
