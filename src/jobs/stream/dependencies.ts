import { createAgentStore } from "../../accounts/agent-store.ts";
import { createCredentialCheck, type IsCredentialCurrent } from "../../accounts/login/credential-check.ts";
import type { Config } from "../../env.ts";
import { createClickHouse } from "../../storage/clickhouse.ts";
import { createDatabase } from "../../storage/libsql.ts";
import type { AgentShard } from "../../telemetry/shard/agent-shard.ts";
import { createShards } from "../../telemetry/shard/shard-client.ts";
import { createTelemetryStore } from "../../telemetry/store/telemetry-store.ts";
import { createJobIndex, type JobIndex } from "../job-store.ts";
import { produceAgentDetails } from "../producers/agent-details.ts";
import { produceAgentHistory } from "../producers/agent-history.ts";
import type { Producer, Work } from "../producers/producer.ts";

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
