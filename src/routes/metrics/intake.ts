import { Hono } from "hono";
import * as z from "zod";
import type { AppContext, AppEnv } from "../../http/context.ts";
import { onError } from "../../http/on-error.ts";
import type { Operation } from "../../http/operation.ts";
import { MAX_DECOMPRESSED_BYTES, readBytes, readDecompressed } from "../../http/request/bytes.ts";
import { basicCredentials, influxCredentials, openWispCredentials } from "../../http/request/credentials.ts";
import type { OperationSpec } from "../../http/route-registry.ts";
import { path, query } from "../../http/validation.ts";
import { DomainError } from "../../lib/errors.ts";
import { InfluxError, InfluxQuery, OpenWispPath, OpenWispQuery } from "../../schemas/intake.ts";
import { ReportResponse } from "../../schemas/telemetry.ts";
import type { Services } from "../../services.ts";
import { describeRejections, namingLabels } from "../../telemetry/intake.ts";

/**
 * Accepts metrics in the protocols of other systems. The handlers load the decoders when they are needed, so that the Worker starts fast.
 */
const loadDecoders = () => import("../../protocols/decoders.ts");

const TAG = "Metrics of other systems";
const UNSUPPORTED = { 415: "The content type or encoding is not supported" };
const LIMITED = { 429: "Too many failed logins with this name or from this address" };
const ACCESS =
  "An agent writes its own metrics. An app with the permission `write` writes for the agents that it sees. Instead of a token, the header " +
  "`Authorization: Basic` may have the app's name and API key, or `agent/`, an agent's name and its password.";

/** Labels that name the agent, unless the app has its own. */
const PROMETHEUS_LABELS = ["instance"];
const OTLP_LABELS = ["service.instance.id", "host.name"];
const INFLUX_LABELS = ["host"];
/** Attributes of resources that tell the metrics of one agent's programs apart. The others would only make names long. */
const SERVICE_LABELS = ["service.name", "service.namespace"];

/** The status is that of the error in the protocol of the request: some clients can read no other body. */
const inProtocol = (description: string) => ({ description });
const OTLP_ERRORS = {
  ...LIMITED,
  400: inProtocol("The body cannot be read: `google.rpc.Status` in the encoding of the request"),
  413: inProtocol("The body is too large, or has more than 50,000 points"),
  415: inProtocol("The content type or encoding is not supported"),
  503: inProtocol("A store is unavailable. Retry after the time in Retry-After"),
};

export function intakeRoutes(operation: Operation, { intake }: Pick<Services, "intake">) {
  const writeLines = async (c: AppContext, precision: string | undefined): Promise<Response> => {
    try {
      const { decodeLines } = await loadDecoders();
      const decoded = decodeLines(await readDecompressed(c), precision);
      const assignment = { labels: INFLUX_LABELS };
      const { rejected } = await intake.write(c.get("actor"), "influx", decoded, assignment);
      if (rejected.length === 0) return c.body(null, 204);
      const message = `partial write: ${describeRejections(rejected)}`;
      const lines = rejected.flatMap(({ origin }) => origin ?? []);
      const line = lines.length === 0 ? {} : { line: lines.reduce((first, one) => Math.min(first, one)) };
      return c.json({ code: "invalid", message, ...line, error: message }, 400);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const { status, headers } = onError(error, c);
      const body = { code: INFLUX_CODES[status] ?? "internal error", message: error.message, error: error.message };
      return Response.json(body, { status, headers });
    }
  };
  const influxSpec = (version: 1 | 2): OperationSpec => ({
    action: "telemetry.write_influx",
    tag: TAG,
    summary: `Write lines of InfluxDB, as to version ${version}`,
    description:
      `Line protocol, also compressed with gzip. The tag \`host\` names the agent. A metric is named \`measurement.field\`. A line that is ` +
      `rejected does not affect the others: these are stored. ${ACCESS} \`Authorization: Token\` may have a token or \`app_name:api_key\`.`,
    response: z.null(),
    isEmpty: true,
    consumes: ["text/plain"],
    credentialsIn: influxCredentials,
    errorResponses: {
      ...LIMITED,
      400: { description: "Some lines were rejected, or the body cannot be read", schema: InfluxError },
      413: { description: "The body is too large, or has more than 50,000 points", schema: InfluxError },
      415: { description: UNSUPPORTED[415], schema: InfluxError },
      503: { description: "A store is unavailable. Retry after the time in Retry-After", schema: InfluxError },
    },
  });

  return (
    new Hono<AppEnv>()
      .post(
        "/api/v1/prometheus/write",
        operation({
          action: "telemetry.write_prometheus",
          tag: TAG,
          summary: "Write samples of Prometheus",
          description:
            "Remote write 1.0: protobuf, compressed with snappy. The label `instance` names the agent. The metric is named after the series: " +
            `\`up{job="node"}\`. Values that are not numbers, such as stale markers, are skipped. ${ACCESS}`,
          response: z.null(),
          isEmpty: true,
          consumes: ["application/x-protobuf"],
          credentialsIn: basicCredentials,
          errorResponses: {
            ...UNSUPPORTED,
            ...LIMITED,
            400: "Some samples were rejected, and all others were stored; or the body cannot be read",
          },
        }),
        async (c) => {
          const { checkRemoteWriteType, decodeRemoteWrite } = await loadDecoders();
          checkRemoteWriteType(c.req.header("Content-Type"));
          const decoded = decodeRemoteWrite(await readBytes(c), MAX_DECOMPRESSED_BYTES);
          const assignment = { labels: PROMETHEUS_LABELS };
          const { rejected } = await intake.write(c.get("actor"), "prometheus", decoded, assignment);
          // The specification requires this status for partial writes. The sender logs the text and does not retry.
          return rejected.length > 0 ? c.json({ detail: describeRejections(rejected) }, 400) : c.body(null, 204);
        },
      )
      .post(
        "/api/v1/otlp/v1/metrics",
        operation({
          action: "telemetry.write_otlp",
          tag: TAG,
          summary: "Write metrics of OpenTelemetry",
          description:
            "OTLP as protobuf or JSON, also compressed with gzip. The resource attribute `service.instance.id`, or else `host.name`, names the " +
            "agent. Histograms are stored as count, sum, minimum, maximum and the quantiles p50, p90 and p99. The response has a partial " +
            `success if data points were rejected. ${ACCESS}`,
          response: z.object({
            partialSuccess: z.object({ rejectedDataPoints: z.string(), errorMessage: z.string() }).optional(),
          }),
          produces: null,
          consumes: ["application/x-protobuf", "application/json"],
          credentialsIn: basicCredentials,
          errorResponses: OTLP_ERRORS,
        }),
        async (c) => {
          const { decodeOtlp, encodeOtlpError, encodeOtlpResponse, OTLP_TYPES, otlpEncoding } = await loadDecoders();
          const encoding = otlpEncoding(c.req.header("Content-Type"));
          const headers = { "Content-Type": OTLP_TYPES[encoding] };
          const actor = c.get("actor");
          try {
            // The labels of an agent's own metrics need not name it.
            const naming = actor.kind === "agent" ? [] : namingLabels(actor, OTLP_LABELS);
            const decoded = decodeOtlp(await readDecompressed(c), encoding, SERVICE_LABELS, naming);
            const { rejected } = await intake.write(actor, "otlp", decoded, { labels: OTLP_LABELS });
            const dataPoints = new Set(rejected.map(({ origin }) => origin)).size;
            return c.body(encodeOtlpResponse(encoding, dataPoints, describeRejections(rejected)), 200, headers);
          } catch (error) {
            if (!(error instanceof DomainError)) throw error;
            const response = onError(error, c);
            response.headers.set("Content-Type", headers["Content-Type"]);
            return new Response(encodeOtlpError(encoding, error.message), response);
          }
        },
      )
      .post("/api/v1/influx/write", operation(influxSpec(1)), query(InfluxQuery), (c) =>
        writeLines(c, c.req.valid("query").precision),
      )
      .post("/api/v1/influx/api/v2/write", operation(influxSpec(2)), query(InfluxQuery), (c) =>
        writeLines(c, c.req.valid("query").precision),
      )
      // The address of InfluxDB itself, for clients such as icinga2 that cannot be given a path.
      .post("/api/v2/write", operation(influxSpec(2)), query(InfluxQuery), (c) =>
        writeLines(c, c.req.valid("query").precision),
      )
      .post(
        "/api/v1/openwisp/api/v1/monitoring/device/:id/",
        operation({
          action: "telemetry.write_openwisp",
          tag: TAG,
          summary: "Write a report of OpenWISP's agent",
          description: `NetJSON DeviceMonitoring, also compressed with gzip. The path names the agent. ${ACCESS}`,
          response: ReportResponse,
          consumes: ["application/json"],
          credentialsIn: openWispCredentials,
          errorResponses: { ...UNSUPPORTED, ...LIMITED, 404: "The agent does not exist" },
        }),
        path(OpenWispPath),
        query(OpenWispQuery),
        async (c) => {
          const { decodeDeviceMonitoring } = await loadDecoders();
          const decoded = decodeDeviceMonitoring(await readDecompressed(c), c.req.valid("query").time);
          const assignment = { apId: c.req.valid("param").id };
          const written = await intake.write(c.get("actor"), "openwisp", decoded, assignment);
          const rejected = written.rejected.map(({ name, reason }) => ({ field: name, reason }));
          const { accepted } = written;
          return c.json({ status: "success", detail: `${accepted} values stored`, accepted, rejected });
        },
      )
  );
}

/** The codes of InfluxDB 2 for the statuses of errors. */
const INFLUX_CODES: Record<number, string> = {
  400: "invalid",
  403: "forbidden",
  413: "request too large",
  415: "invalid",
  503: "unavailable",
};
