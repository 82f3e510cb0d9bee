import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { until } from "../../scripts/harness/product.ts";
import { createAgentStore } from "../../src/accounts/agents/agent-store.ts";
import { createAuditFeed } from "../../src/accounts/audit-feed.ts";
import { ReplicaReads } from "../../src/accounts/replica-reads.ts";
import { createReplicatedGazetteer } from "../../src/geo/gazetteer-store.ts";
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
let primary: Database;

beforeAll(async () => {
  const [primaryPort, replicaPort, grpcPort] = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort()]);
  [primaryUrl, replicaUrl] = [`http://127.0.0.1:${primaryPort}`, `http://127.0.0.1:${replicaPort}`];
  copyImage(inject("databaseImage"), join(folder, "primary"));
  const first = sqldComponent(join(folder, "primary"), primaryPort);
  await supervisor.start({ ...first, args: [...first.args, "--grpc-listen-addr", `127.0.0.1:${grpcPort}`] });
  const second = sqldComponent(join(folder, "replica"), replicaPort);
  const args = [...second.args, "--primary-grpc-url", `http://127.0.0.1:${grpcPort}`];
  await supervisor.start({ ...second, name: "replica", args });
  primary = createDatabase({ url: primaryUrl });
});
afterAll(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
});

const insertAgent = (apId: string) =>
  createAgentStore(primary).insert({ apId, credentialKind: "hmac", credential: "none", configuration: {} }, ACTOR);

/** Counts how often the replica was read. */
function openReads() {
  const reads = new ReplicaReads(primary, { LIBSQL_READ_URL: replicaUrl, LIBSQL_AUTH_TOKEN: undefined });
  const feed = reads.follow(createAuditFeed(primary));
  let fromReplica = 0;
  const names = async () =>
    (
      await reads.read(async (database) => {
        if (database !== primary) fromReplica++;
        return await createAgentStore(database).outlines();
      })
    ).map(({ apId }) => apId);
  return {
    reads,
    refresh: () => feed.since(undefined),
    names,
    get fromReplica() {
      return fromReplica;
    },
  };
}

describe("a replica of the accounts database", () => {
  it("is read only if it has every change that the service knows of", async () => {
    const world = openReads();
    // Before the service knows the newest change, it reads the primary.
    await world.names();
    expect(world.fromReplica).toBe(0);
    for (let i = 0; i < 30; i++) {
      await insertAgent(`replicated-${i}`);
      await world.refresh();
      expect(await world.names()).toContain(`replicated-${i}`);
    }
    await until(async () => {
      await world.names();
      return world.fromReplica > 0;
    });
  });

  it("has the names of towns", async () => {
    const world = openReads();
    await world.refresh();
    const gazetteer = createReplicatedGazetteer(world.reads.read);
    const [place] = await gazetteer.findByPrefix({ key: "bristol", country: undefined }, 1);
    expect(place).toMatchObject({ name: expect.stringContaining("Bristol") });
  });

  it.each(["SIGSTOP", "SIGKILL"] as const)("is not needed: after %s the primary is read", async (signal) => {
    const world = openReads();
    await world.refresh();
    await until(async () => {
      await world.names();
      return world.fromReplica > 0;
    });
    const pid = supervisor.pids.replica ?? 0;
    process.kill(pid, signal);
    const before = world.fromReplica;
    expect(await world.names()).toContain("replicated-0");
    expect(await world.names()).toContain("replicated-0");
    expect(world.fromReplica).toBe(before);
    if (signal === "SIGSTOP") process.kill(pid, "SIGCONT");
    else await until(async () => (await fetch(`${replicaUrl}/health`).catch(() => undefined))?.ok === true);
    const again = openReads();
    await again.refresh();
    await until(async () => {
      await again.names();
      return again.fromReplica > 0;
    });
  });
});
