import type { Backtests } from "./alerting/backtest.ts";
import type { Aggregates } from "./fleet/aggregates.ts";
import type { Selectors } from "./fleet/selectors.ts";
import type { Exports, ExportsOptions } from "./telemetry/export/exports.ts";
import type { ShardClient } from "./telemetry/shard/shard-client.ts";
import type { TelemetryStore } from "./telemetry/store/telemetry-store.ts";

/** Services that few requests need. The first such request loads them, so that cold starts stay short. */
export interface ServicesOnDemand {
  aggregates: Aggregates;
  backtests: Backtests;
  exports: Exports;
}

interface Dependencies extends ExportsOptions {
  telemetry: TelemetryStore;
  shards: ShardClient;
  selectors: Selectors;
  telemetryDays: number;
}

export function createServicesOnDemand(dependencies: Dependencies): ServicesOnDemand {
  const { telemetryDays, telemetry, shards, selectors, labelledAgents, clickhouse } = dependencies;
  const loadAggregates = async (): Promise<Aggregates> => {
    const { createAggregates } = await import("./fleet/aggregates.ts");
    return createAggregates({ agents: labelledAgents, store: telemetry, shards });
  };
  const loadBacktests = async (): Promise<Backtests> => {
    const [{ createBacktests }, { createRuleReader }] = await Promise.all([
      import("./alerting/backtest.ts"),
      import("./telemetry/store/rule-reader.ts"),
    ]);
    return createBacktests({ agents: labelledAgents, selectors, reader: createRuleReader(clickhouse), telemetryDays });
  };
  const loadExports = async (): Promise<Exports> => {
    const { createExports } = await import("./telemetry/export/exports.ts");
    return createExports(dependencies, telemetryDays);
  };
  return {
    aggregates: { read: async (...request) => await (await loadAggregates()).read(...request) },
    backtests: { run: async (...request) => await (await loadBacktests()).run(...request) },
    exports: {
      remoteRead: async (...request) => await (await loadExports()).remoteRead(...request),
      latestValues: async (...request) => await (await loadExports()).latestValues(...request),
      download: async (...request) => await (await loadExports()).download(...request),
    },
  };
}
