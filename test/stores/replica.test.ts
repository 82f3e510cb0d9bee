import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { until } from "../../scripts/harness/product.ts";
import { createAgentLists } from "../../src/accounts/agents/agent-lists.ts";
import { createAgentStore } from "../../src/accounts/agents/agent-store.ts";
import { createAuditFeed } from "../../src/accounts/audit-feed.ts";
import { createReplicaReads } from "../../src/accounts/replica-reads.ts";
import { createGazetteer } from "../../src/geo/gazetteer-store.ts";
import { sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import { Supervisor } from "../../src/programs/stack/supervisor.ts";
import { createDatabase, type Database } from "../../src/storage/libsql.ts";
import { copyImage } from "../support/database-image.ts";
import { ACTOR } from "../support/filled-stores.ts";

const folder = mkdtempSync(join(tmpdir(), "controller-replica-"));
const supervisor = new Supervisor();
let primaryUrl: string;
let replicaUrl: string;
let grpcUrl: string;
let primary: Database;

beforeAll(async () => {
  const [primaryPort, replicaPort, grpcPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  [primaryUrl, replicaUrl] = [`http://127.0.0.1:${primaryPort}`, `http://127.0.0.1:${replicaPort}`];
  copyImage(inject("databaseImage"), join(folder, "primary"));
  const first = sqldComponent(join(folder, "primary"), primaryPort);
  await supervisor.start({ ...first, args: [...first.args, "--grpc-listen-addr", `127.0.0.1:${grpcPort}`] });
  grpcUrl = `http://127.0.0.1:${grpcPort}`;
  await startReplica(supervisor, "replica", replicaPort);
  primary = createDatabase({ url: primaryUrl });
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const insertAgent = (apId: string) =>
  createAgentStore(primary).insert({ apId, credentialKind: "hmac", credential: "none", configuration: {} }, ACTOR);

function openReads(readUrl = replicaUrl) {
  const reads = createReplicaReads({
    LIBSQL_URL: primaryUrl,
    LIBSQL_READ_URL: readUrl,
    LIBSQL_AUTH_TOKEN: undefined,
  });
  const feed = reads.follow(createAuditFeed(primary));
  return {
    database: reads.database,
    refresh: () => feed.since(undefined),
    /** Returns the names of all agents, and whether the replica sent them. */
    async names() {
      const requests = vi.spyOn(globalThis, "fetch");
      const outlines = await createAgentLists(reads.database).outlines();
      const urls = requests.mock.calls.map(([request]) => (request instanceof Request ? request.url : String(request)));
      requests.mockRestore();
      return {
        names: outlines.map(({ apId }) => apId),
        isFromReplica: !urls.some((url) => url.startsWith(primaryUrl)),
      };
    },
  };
}

const startReplica = (on: Supervisor, name: string, port: number) => {
  const component = sqldComponent(join(folder, name), port);
  return on.start({ ...component, name, args: [...component.args, "--primary-grpc-url", grpcUrl] });
};

describe("a replica of the accounts database", () => {
  it("is read only if it has every change that the service knows of", async () => {
    const world = openReads();
    // Before the service knows the newest change, it reads the primary.
    expect((await world.names()).isFromReplica).toBe(false);
    for (let i = 0; i < 30; i++) {
      await insertAgent(`replicated-${i}`);
      await world.refresh();
      expect((await world.names()).names).toContain(`replicated-${i}`);
    }
    await until(async () => (await world.names()).isFromReplica);
  });

  it("is not read by mistake while it starts and lets the primary answer some of its requests", async () => {
    const starting = new Supervisor();
    try {
      for (let round = 0; round < 3; round++) {
        const port = await anyFreePort();
        await startReplica(starting, `starting-${round}`, port);
        const world = openReads(`http://127.0.0.1:${port}`);
        for (let i = 0; i < 30; i++) {
          const name = `started-${round}-${i}`;
          await insertAgent(name);
          await world.refresh();
          expect((await world.names()).names).toContain(name);
        }
      }
    } finally {
      await starting.stop();
    }
  });

  it("has the names of towns", async () => {
    const world = openReads();
    await world.refresh();
    const gazetteer = createGazetteer(world.database);
    const [place] = await gazetteer.findByPrefix({ key: "bristol", country: undefined }, 1);
    expect(place).toMatchObject({ name: expect.stringContaining("Bristol") });
  });

  it.each(["SIGSTOP", "SIGKILL"] as const)("is not needed: after %s the primary is read", async (signal) => {
    const world = openReads();
    await world.refresh();
    await until(async () => (await world.names()).isFromReplica);
    const pid = supervisor.pids.replica ?? 0;
    process.kill(pid, signal);
    for (let i = 0; i < 2; i++) {
      const { names, isFromReplica } = await world.names();
      expect(names).toContain("replicated-0");
      expect(isFromReplica).toBe(false);
    }
    if (signal === "SIGSTOP") process.kill(pid, "SIGCONT");
    else await until(async () => (await fetch(`${replicaUrl}/health`).catch(() => undefined))?.ok === true);
    const again = openReads();
    await again.refresh();
    await until(async () => (await again.names()).isFromReplica);
  });
});
