import { createAgentStore } from "../../accounts/agents/agent-store.ts";
import { createCurrentScope } from "../../accounts/login/account-scope.ts";
import { createCredentialCheck, type IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import type { Config } from "../../env.ts";
import { createClickHouse } from "../../storage/clickhouse.ts";
import { createDatabase } from "../../storage/libsql.ts";
import { createReadings } from "../../telemetry/readings.ts";
import type { AgentShard } from "../../telemetry/shard/agent-shard.ts";
import { createPlacement } from "../../telemetry/shard/placement.ts";
import { createShardClient } from "../../telemetry/shard/shard-client.ts";
import { createTelemetryStore } from "../../telemetry/store/telemetry-store.ts";
import { createJobStore, type JobStore } from "../job-store.ts";
import { produceAgentDetails } from "../producers/agent-details.ts";
import { produceAgentHistory } from "../producers/agent-history.ts";
import { produceLiveSelection } from "../producers/live-selection.ts";
import type { Producer, ProducerInput } from "../producers/producer.ts";

export interface JobStreamDependencies {
  isCredentialCurrent: IsCredentialCurrent;
  jobStore: JobStore;
  createProducer(input: ProducerInput): Producer;
}

/** Wires the stores and clients that a job's Durable Object uses. */
export function createJobStreamDependencies(
  config: Config,
  bindings: { AGENT_SHARD: DurableObjectNamespace<AgentShard> },
): JobStreamDependencies {
  const database = createDatabase({ url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN });
  const shards = createShardClient(bindings.AGENT_SHARD, createPlacement(config));
  const createProducer = (input: ProducerInput): Producer => {
    switch (input.kind) {
      case "agent_details":
        return produceAgentDetails(createAgentStore(database), input);
      case "agent_data":
        return produceAgentHistory({
          readings: createReadings(createTelemetryStore(createClickHouse(config)), shards),
          shards,
          range: input,
          now: Date.now,
        });
      case "live_data":
        return produceLiveSelection({
          agents: createAgentStore(database),
          scopeOf: createCurrentScope(database),
          shards,
          request: input,
          now: Date.now,
        });
    }
  };
  return { isCredentialCurrent: createCredentialCheck(database), jobStore: createJobStore(database), createProducer };
}
