import type { AgentCache } from "../../accounts/agents/agent-cache.ts";
import type { AgentStore } from "../../accounts/agents/agent-store.ts";
import type { ScopedAgent } from "../../auth/agent-scope.ts";
import type { Identity } from "../../auth/identity.ts";
import type { Readings } from "../readings.ts";
import type { ShardClient } from "../shard/shard-client.ts";
import type { ExportStore } from "../store/export-queries.ts";

/** What the exports read from. */
export interface ExportSources {
  /** Returns all agents with their labels. The result may be a few seconds old. */
  agents: () => Promise<readonly ScopedAgent[]>;
  agentStore: Pick<AgentStore, "watched" | "names">;
  findAgent: AgentCache["find"];
  readings: Pick<Readings, "lastSeen">;
  store: ExportStore;
  shards: Pick<ShardClient, "pendingOfMany" | "flush">;
  /** How long points are stored. */
  telemetryDays: number;
  now: () => number;
}

const DAY_MS = 86_400_000;
const DEFAULT_AGENT_LABEL = "instance";

/** Returns the time from which points are stored. Older points are deleted, but the rollup still counts them. */
export const storedSinceMs = ({ telemetryDays, now }: Pick<ExportSources, "telemetryDays" | "now">): number =>
  now() - telemetryDays * DAY_MS;

/** Returns the label of a series that names its agent. */
export const agentLabelOf = ({ agentLabel }: Identity): string => agentLabel ?? DEFAULT_AGENT_LABEL;
