import { createAgentStore } from "../accounts/agent-store.ts";
import { createCredentialCheck, type IsCredentialCurrent } from "../accounts/credential-check.ts";
import { createDatabase } from "../accounts/database.ts";
import type { Config } from "../env.ts";
import type { AgentShard } from "../telemetry/agent-shard.ts";
import { createClickHouse } from "../telemetry/clickhouse.ts";
import { createShards } from "../telemetry/shards.ts";
import { createTelemetryStore } from "../telemetry/store.ts";
import { produceAgentDetails } from "./agent-details.ts";
import { produceAgentHistory } from "./agent-history.ts";
import { createJobIndex, type JobIndex } from "./job-index.ts";
import type { Producer, Work } from "./work.ts";

/** What a job's object needs from outside, wired in one place. */
export interface JobStores {
  isCredentialCurrent: IsCredentialCurrent;
  index: JobIndex;
  producerOf(work: Work): Producer;
}

export function createJobStores(
  config: Config,
  bindings: { AGENT_SHARD: DurableObjectNamespace<AgentShard> },
): JobStores {
  const database = createDatabase({ url: config.LIBSQL_URL, authToken: config.LIBSQL_AUTH_TOKEN });
  const producerOf = (work: Work): Producer => {
    switch (work.kind) {
      case "agent_details":
        return produceAgentDetails(createAgentStore(database), work.apIds);
      case "agent_data":
        return produceAgentHistory({
          store: createTelemetryStore(createClickHouse(config)),
          shards: createShards(bindings.AGENT_SHARD, config.AGENT_SHARDS),
          range: work,
          now: Date.now,
        });
    }
  };
  return { isCredentialCurrent: createCredentialCheck(database), index: createJobIndex(database), producerOf };
}
