import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { clickhousePart } from "../../scripts/stack/clickhouse.ts";
import { anyFreePort } from "../../scripts/stack/ports.ts";
import { Supervisor } from "../../scripts/stack/supervisor.ts";

/**
 * One ClickHouse for the tests of all projects, each with a database of its own: of all parts it takes longest to start. Vitest sets up
 * one project after the other and ends none before the last test of all, so the first that asks for it starts it for the others.
 */
export async function sharedClickHouse({ vitest }: TestProject) {
  const root = vitest.getRootProject();
  const { clickhouseUrl } = root.getProvidedContext();
  if (clickhouseUrl !== undefined) return { url: clickhouseUrl, start: async () => {}, stop: async () => {} };
  const folder = mkdtempSync(join(tmpdir(), "controller-clickhouse-"));
  const supervisor = new Supervisor();
  const port = await anyFreePort();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    start: async () => {
      await supervisor.start(clickhousePart(folder, port, process.env.CLICKHOUSE_BIN));
      root.provide("clickhouseUrl", url);
    },
    stop: async () => {
      await supervisor.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** For projects that need nothing else to be there before their tests. */
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
