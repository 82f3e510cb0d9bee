import type { AgentCache } from "../../accounts/agents/agent-cache.ts";
import type { Actor } from "../../auth/identity.ts";
import { authorize } from "../../auth/permissions.ts";
import type { Selector } from "../../lib/selectors.ts";
import { TEXT_TYPES, textFormatFor } from "../../protocols/prometheus/text-format.ts";
import type { ClickHouse } from "../../storage/clickhouse.ts";
import { createExportStore } from "../store/export-queries.ts";
import { type Download, type DownloadRequest, downloadPoints } from "./download.ts";
import type { ExportSources } from "./export-sources.ts";
import { exportLatest } from "./latest-values.ts";
import { type RemoteReadResponse, readRemotely } from "./remote-read.ts";

/** Gives telemetry to other systems. */
export interface Exports {
  /** Answers a request of Prometheus' remote read protocol. */
  remoteRead(actor: Actor, body: Uint8Array): Promise<RemoteReadResponse>;
  /** Returns the latest values of the agents that are online, in the format for an `Accept` header. */
  latestValues(actor: Actor, selector: Selector, accept: string | undefined): Promise<LatestValues>;
  /** Returns points as a file. */
  download(actor: Actor, request: DownloadRequest): Promise<Download>;
}

export interface LatestValues {
  contentType: string;
  pieces: Generator<string>;
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
      return await readRemotely(sources, actor, body);
    },

    async latestValues(actor, selector, accept) {
      authorize(actor, "telemetry.export");
      authorize(actor, "agents.list");
      const format = textFormatFor(accept);
      return { contentType: TEXT_TYPES[format], pieces: await exportLatest(sources, actor, selector, format) };
    },

    async download(actor, request) {
      authorize(actor, "telemetry.download");
      authorize(actor, "agents.list");
      return await downloadPoints(sources, actor, request);
    },
  };
}
