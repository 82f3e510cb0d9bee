import type { Actor } from "../../auth/identity.ts";
import { authorize } from "../../auth/permissions.ts";
import type { Selector } from "../../lib/selectors.ts";
import type { TextFormat } from "../../protocols/prometheus/text-format.ts";
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

export function createExports(sources: Omit<ExportSources, "now">, now: () => number = Date.now): Exports {
  const complete: ExportSources = { ...sources, now };
  return {
    async remoteRead(actor, body) {
      authorize(actor, "telemetry.remote_read");
      authorize(actor, "agents.list");
      const { readRemotely } = await import("./remote-read.ts");
      return await readRemotely(complete, actor, body);
    },

    async latestValues(actor, selector, format) {
      authorize(actor, "telemetry.export");
      authorize(actor, "agents.list");
      const { exportLatest } = await import("./latest-values.ts");
      return await exportLatest(complete, actor, selector, format);
    },

    async download(actor, request) {
      authorize(actor, "telemetry.download");
      authorize(actor, "agents.list");
      const { downloadPoints } = await import("./download.ts");
      return await downloadPoints(complete, actor, request);
    },
  };
}
