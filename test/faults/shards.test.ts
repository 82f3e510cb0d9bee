import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { makeAgents, makeUser, type TestAgent } from "../../scripts/harness/accounts.ts";
import { selectRows, withClickHouse } from "../../scripts/harness/clickhouse.ts";
import { ShardCluster } from "../../scripts/harness/cluster/shard-cluster.ts";
import { Product, until } from "../../scripts/harness/product.ts";
import { sampleAt, UPDATE_PATH } from "../../scripts/harness/telemetry-oracle.ts";
import { newClickHouseAccess, withLogin } from "../../src/programs/stack/components/clickhouse-access.ts";
import type { Overview } from "../../src/schemas/fleet/overview.ts";
import type { AgentState, MultiMetricData } from "../../src/schemas/metrics.ts";
import { SHARDS, shardOfName } from "../support/cluster/shards.ts";
import { dataFolderWith } from "../support/database-image.ts";
import { ServiceClient } from "../support/service-client.ts";

/** The product on two ClickHouse nodes, of which one is killed. */
describe("a product on a cluster of shards", () => {
  const folder = mkdtempSync(join(tmpdir(), "controller-shards-"));
  const access = newClickHouseAccess();
  let dataDir: string;
  let cluster: ShardCluster;
  let product: Product;
  let service: ServiceClient;
  let agents: TestAgent[];
  let token: string;

  beforeAll(async () => {
    dataDir = dataFolderWith(inject("databaseImage"));
    cluster = await ShardCluster.start({ dataDir: folder, shards: SHARDS, access, databases: ["controller"] });
    product = await Product.run("start", dataDir, { ...cluster.settings(access.owner), FLUSH_INTERVAL_MS: "50" });
    service = new ServiceClient(product.url);
    agents = await makeAgents(dataDir, "sharded", 12);
    ({ token } = await makeUser(dataDir, "sharded@example.com", undefined, ["admin"]));
  });
  afterAll(async () => {
    if (product?.isRunning) await product.interrupt();
    await cluster?.stop();
    for (const one of [dataDir, folder]) rmSync(one, { recursive: true, force: true });
  });

  let sent = 0;
  /** Sends a sample of each agent, all at once, and returns the statuses. */
  const report = async () => {
    const tsMs = Date.now() + sent++;
    const responses = await Promise.all(
      agents.map((agent) => service.send("POST", UPDATE_PATH, agent.token, sampleAt(tsMs))),
    );
    return new Set(responses.map(({ status }) => status));
  };
  const read = async <T>(path: string): Promise<{ status: number; body: T }> => {
    const response = await service.send("GET", path, token);
    return { status: response.status, body: (await response.json()) as T };
  };
  const chartOf = (apId: string) =>
    read<MultiMetricData>(`/api/v1/metrics/agent_multi_metric_data?agent=${apId}&metrics=n&window=1h`);
  /** Returns how many points and sums of minutes the whole cluster has of each agent. */
  const stored = async () =>
    await withClickHouse(
      { urls: { clickhouse: withLogin(cluster.urls[0] ?? "", access.owner) } },
      async (clickhouse) => {
        const of = async (expression: string, table: string) =>
          (
            await selectRows<{ n: string }>(
              clickhouse,
              `SELECT ${expression} AS n FROM ${table} WHERE startsWith(ap_id, 'sharded') GROUP BY ap_id`,
            )
          ).map(({ n }) => Number(n));
        return [await of("count()", "points_v1"), await of("sum(n)", "minutes_v1")];
      },
    );
  const complete = () => [agents.map(() => sent), agents.map(() => sent)];

  it.each([1, 0])(
    "accepts all reports while shard %i is down, and serves the agents of the other one",
    async (down) => {
      expect(await report()).toEqual(new Set([200]));
      await until(async () => JSON.stringify(await stored()) === JSON.stringify(complete()));
      await cluster.kill(down);
      for (let i = 0; i < 3; i++) expect(await report()).toEqual(new Set([200]));
      const isDown = ({ apId }: TestAgent) => shardOfName(apId) === down;
      const [dead, alive] = [agents.filter(isDown), agents.filter((agent) => !isDown(agent))];
      for (const { apId } of alive) {
        const { status, body } = await chartOf(apId);
        expect([status, body.series[0]?.points.length, body.complete_from]).toEqual([200, sent, undefined]);
      }
      // What the journal has, and since when.
      for (const { apId } of dead) {
        const { status, body } = await chartOf(apId);
        expect([status, body.series[0]?.points.length]).toEqual([200, 3]);
        expect(body.complete_from).toEqual(expect.any(String));
      }
      const overview = await read<Overview>("/api/v1/overview");
      expect([overview.status, overview.body.access_points.length]).toEqual([200, agents.length]);
      const list = await read<AgentState[]>("/api/v1/agents/");
      expect([list.status, list.body.length]).toEqual([200, agents.length]);
      expect(list.body.every(({ online }) => online)).toBe(true);
      expect((await service.call("/readyz")).status).toBe(200);

      await cluster.revive(down);
      await until(async () => JSON.stringify(await stored()) === JSON.stringify(complete()));
      for (const { apId } of agents) {
        const { body } = await chartOf(apId);
        expect([body.series[0]?.points.length, body.complete_from]).toEqual([sent, undefined]);
      }
      expect(product.output).not.toContain('"message":"bug"');
    },
  );
});
