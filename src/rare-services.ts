import { type Backtests, createBacktests } from "./alerting/backtest.ts";
import { type Aggregates, createAggregates } from "./fleet/aggregates.ts";
import type { Selectors } from "./fleet/selectors.ts";
import { createExports, type Exports, type ExportsOptions } from "./telemetry/export/exports.ts";
import type { ShardClient } from "./telemetry/shard/shard-client.ts";
import { createRuleReader } from "./telemetry/store/rule-reader.ts";
import type { TelemetryStore } from "./telemetry/store/telemetry-store.ts";

/** Services that few requests need. They are one module: see `protocols/decoders.ts`. */
export interface RareServices {
  aggregates: Aggregates;
  backtests: Backtests;
  exports: Exports;
}

export interface RareServicesOptions extends ExportsOptions {
  telemetry: TelemetryStore;
  shards: ShardClient;
  selectors: Selectors;
  telemetryDays: number;
}

export function createRareServices(options: RareServicesOptions): RareServices {
  const { telemetryDays, telemetry, shards, selectors, labelledAgents: agents, clickhouse } = options;
  return {
    aggregates: createAggregates({ agents, store: telemetry, shards }),
    backtests: createBacktests({ agents, selectors, reader: createRuleReader(clickhouse), telemetryDays }),
    exports: createExports(options, telemetryDays),
  };
}
