import type { AgentCache } from "../../accounts/agents/agent-cache.ts";
import type { Actor } from "../../auth/identity.ts";
import { authorize } from "../../auth/permissions.ts";
import type { Selector } from "../../lib/selectors.ts";
import type { TextFormat } from "../../protocols/prometheus/text-format.ts";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import { createExportStore } from "../store/export-queries.ts";
import type { Download, DownloadRequest } from "./download.ts";
import type { ExportSources } from "./export-sources.ts";
import type { RemoteReadResponse } from "./remote-read.ts";

/** Gives telemetry to other systems. Each part is loaded when it is first used: most requests need none of them. */
export interface Exports {
  /** Answers a request of Prometheus' remote read protocol. */
  remoteRead(actor: Actor, body: Uint8Array): Promise<RemoteReadResponse>;
  /** Returns the latest values of the agents that are online, piece by piece. */
  latestValues(actor: Actor, selector: Selector, format: TextFormat): Promise<Generator<string>>;
  /** Returns points as a file. */
  download(actor: Actor, request: DownloadRequest): Promise<Download>;
}

export interface ExportsOptions extends Pick<ExportSources, "readings" | "shards"> {
  labelledAgents: ExportSources["agents"];
  agents: ExportSources["agentStore"];
  agentCache: Pick<AgentCache, "find">;
  clickhouse: ClickHouse;
}

export function createExports(options: ExportsOptions, telemetryDays: number, now: () => number = Date.now): Exports {
  const { labelledAgents, agents, agentCache, clickhouse, readings, shards } = options;
  const sources: ExportSources = {
    agents: labelledAgents,
    agentStore: agents,
    findAgent: agentCache.find,
    store: createExportStore(clickhouse),
    readings,
    shards,
    telemetryDays,
    now,
  };
  return {
    async remoteRead(actor, body) {
      authorize(actor, "telemetry.remote_read");
      authorize(actor, "agents.list");
      const { readRemotely } = await import("./remote-read.ts");
      return await readRemotely(sources, actor, body);
    },

    async latestValues(actor, selector, format) {
      authorize(actor, "telemetry.export");
      authorize(actor, "agents.list");
      const { exportLatest } = await import("./latest-values.ts");
      return await exportLatest(sources, actor, selector, format);
    },

    async download(actor, request) {
      authorize(actor, "telemetry.download");
      authorize(actor, "agents.list");
      const { downloadPoints } = await import("./download.ts");
      return await downloadPoints(sources, actor, request);
    },
  };
}
