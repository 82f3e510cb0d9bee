import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { pieceStream } from "../../http/piece-stream.ts";
import { readBytes } from "../../http/request/bytes.ts";
import { basicCredentials } from "../../http/request/credentials.ts";
import { query } from "../../http/validation.ts";
import { DownloadQuery, periodOf } from "../../schemas/exports.ts";
import { SelectorQuery } from "../../schemas/fleet/selector.ts";
import type { Services } from "../../services.ts";

const TAG = "Metrics";
const TOO_MUCH = "Narrow the request if it selects too much.";
const ACCESS =
  "Needs both scopes `agents:read` and `telemetry:read`. Instead of a token, the header `Authorization: Basic` may have the name and the API " +
  "key of an app.";

/** Content types of downloads. */
const FILE_TYPES = {
  csv: "text/csv; charset=utf-8",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
  arrow: "application/vnd.apache.arrow.stream",
} as const;
const CHUNKS_TYPE = "application/x-streamed-protobuf";
const SAMPLES_TYPE = "application/x-protobuf";

/** Gives telemetry to other systems: Prometheus, Grafana, and files. */
export function exportsRoutes(operation: Operation, { exports, selectors }: Pick<Services, "exports" | "selectors">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/prometheus/read",
      operation({
        action: "telemetry.remote_read",
        tag: TAG,
        summary: "Read metrics by the remote read protocol of Prometheus",
        description:
          "The body is a `ReadRequest`, compressed with snappy. Responds with samples, or with a stream of XOR chunks if the client accepts it. " +
          "Each series has the labels of the metric, and the label `instance` with the agent's `ap_id`. The series `access_point_info` has " +
          "the labels of the agents. Names that are not valid in Prometheus are escaped by its scheme `values`. A request returns at most " +
          `50,000 series, and 10,000,000 samples in chunks or 500,000 otherwise. ${TOO_MUCH} ${ACCESS}`,
        response: z.string(),
        consumes: [SAMPLES_TYPE],
        credentialsIn: basicCredentials,
        produces: [SAMPLES_TYPE, CHUNKS_TYPE],
      }),
      async (c) => {
        const response = await exports.remoteRead(c.get("actor"), await readBytes(c));
        if (response.type === "samples")
          return c.body(response.body, 200, { "Content-Type": SAMPLES_TYPE, "Content-Encoding": "snappy" });
        const type = `${CHUNKS_TYPE}; proto=prometheus.ChunkedReadResponse`;
        return await pieceStream(c, response.frames, { "Content-Type": type });
      },
    )
    .get(
      "/api/v1/metrics/export",
      operation({
        action: "telemetry.export",
        tag: TAG,
        summary: "Get the latest values of agents for a scrape",
        description:
          "OpenMetrics text if the client accepts it, otherwise the text format of Prometheus. Omits agents that are not online, and values that " +
          "are older than 5 minutes, unless the agent reports less often. Values have no time, so that Prometheus notices when they end. " +
          `Labels and names as in remote read. At most 100,000 series. ${TOO_MUCH} ${ACCESS}`,
        response: z.string(),
        produces: ["text/plain", "application/openmetrics-text"],
        credentialsIn: basicCredentials,
      }),
      query(SelectorQuery),
      async (c) => {
        const actor = c.get("actor");
        const selector = await selectors.resolve(actor, c.req.valid("query").selector);
        const { contentType, pieces } = await exports.latestValues(actor, selector, c.req.header("Accept"));
        return await pieceStream(c, pieces, { "Content-Type": contentType, Vary: "Accept" });
      },
    )
    .get(
      "/api/v1/metrics/download",
      operation({
        action: "telemetry.download",
        tag: TAG,
        summary: "Download points as a file",
        description:
          "The columns are `time`, `agent`, `metric` and `value`, ordered by agent, metric and time. The file has all values that were " +
          "acknowledged before the request, up to 50,000,000. If the connection breaks, the file is not complete. In CSV, a metric that begins " +
          "with `=`, `+`, `-` or `@` has an apostrophe before it, because spreadsheets would execute it. " +
          ACCESS,
        response: z.string(),
        credentialsIn: basicCredentials,
        produces: Object.values(FILE_TYPES).map((type) => type.split(";", 1)[0] ?? type),
        errorResponses: { 404: "The agent does not exist" },
      }),
      query(DownloadQuery),
      async (c) => {
        const actor = c.get("actor");
        const request = c.req.valid("query");
        const selector = await selectors.resolve(actor, request.selector);
        const { agent, metrics, format } = request;
        const period = periodOf(request, Date.now());
        const { name, content } = await exports.download(actor, { agent, selector, metrics, format, ...period });
        return c.body(content, 200, {
          "Content-Type": FILE_TYPES[format],
          "Content-Disposition": `attachment; filename="${name}"`,
        });
      },
    );
}
