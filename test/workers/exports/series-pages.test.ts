import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { parseEnv } from "../../../src/env.ts";
import { createClickHouse } from "../../../src/storage/clickhouse.ts";
import { createExportStore } from "../../../src/telemetry/store/export-queries.ts";
import { testStore, uniqueName } from "../support.ts";

it("lists every stored series once, in pages of limited size", async () => {
  const tsMs = Date.now() - 60_000;
  const apIds = [uniqueName(), uniqueName(), uniqueName()];
  const names = ["a", 'a{x="\\\\"}', 'a{x="\'"}', "漢", "b\tc", "A"];
  const metrics = Object.fromEntries(names.map((name) => [name, 1]));
  const samples = apIds.map((apId) => ({ apId, tsMs, metrics, texts: {} }));
  await testStore().insert(samples, crypto.randomUUID());
  const expected = apIds.flatMap((apId) => names.map((metric) => ({ apId, metric, count: 1 })));
  const textOf = ({ apId, metric, count }: (typeof expected)[number]) => `${apId} ${metric} ${count}`;
  for (const pageSize of [1, 4, 6, 18, 19]) {
    const store = createExportStore(createClickHouse(parseEnv(env)), pageSize);
    const found: string[] = [];
    for await (const page of store.series({ apIds, fromMs: tsMs, toMs: tsMs })) {
      expect(page.length).toBeLessThanOrEqual(pageSize);
      found.push(...page.map(textOf));
    }
    expect(found.toSorted()).toEqual(expected.map(textOf).toSorted());
  }
});
