import type { Actor } from "../../auth/identity.ts";
import { authorizeAgent, authorizeFoundAgent, visibleAgents } from "../../auth/permissions.ts";
import { Invalid } from "../../lib/errors.ts";
import type { Selector } from "../../lib/selectors.ts";
import type { DownloadFormat } from "../store/download-query.ts";
import { type ExportSources, storedSinceMs } from "./export-sources.ts";

/** Downloads points as a file that ClickHouse writes. */

export interface DownloadRequest {
  /** One agent. Default: the agents of the selector. */
  agent?: string | undefined;
  selector: Selector;
  /** Default: all metrics. */
  metrics?: readonly string[] | undefined;
  fromMs: number;
  toMs: number;
  format: DownloadFormat;
}

export interface Download {
  name: string;
  content: ReadableStream<Uint8Array>;
}

/** The service only passes the bytes on. The limit protects ClickHouse. */
const MAX_POINTS = 50_000_000;

const EXTENSIONS: Record<DownloadFormat, string> = {
  csv: "csv",
  ndjson: "ndjson",
  parquet: "parquet",
  arrow: "arrows",
};

/** Throws `NotFound` if the caller does not see the agent, and `Invalid` if there are too many points. */
export async function downloadPoints(
  sources: ExportSources,
  actor: Actor,
  { agent, selector, metrics, fromMs, toMs, format }: DownloadRequest,
): Promise<Download> {
  const { agentStore, findAgent, store, shards } = sources;
  if (agent !== undefined) {
    authorizeAgent(actor, "telemetry.download", agent);
    authorizeFoundAgent(actor, "telemetry.download", await findAgent(agent));
  }
  const apIds = agent !== undefined ? [agent] : await agentStore.names({ scope: visibleAgents(actor), selector });
  // The file then has every value that was acknowledged before the request.
  await shards.flush(apIds);
  const query = { apIds, metrics, fromMs: Math.max(fromMs, storedSinceMs(sources)), toMs };
  if ((await store.count(query)) > MAX_POINTS) {
    const msg = `Value error, a download must not have more than ${MAX_POINTS.toLocaleString("en-US")} points`;
    throw new Invalid([{ loc: ["start_time"], msg, type: "too_many_points" }], "query");
  }
  const subject = agent === undefined ? "metrics" : agent.replace(/[^A-Za-z0-9._-]/g, "_");
  const day = new Date(fromMs).toISOString().slice(0, 10);
  return { name: `${subject}-${day}.${EXTENSIONS[format]}`, content: await store.download(query, format) };
}
