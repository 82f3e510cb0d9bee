import type { Decoded } from "../point.ts";
import { ProtobufWriter } from "../protobuf.ts";
import { ProtocolError } from "../protocol-error.ts";
import { readJsonRequest } from "./json.ts";
import { toPoints } from "./points.ts";
import { readRequest } from "./protobuf.ts";

/** OTLP metrics over HTTP. A response has the encoding of its request. */

export type OtlpEncoding = "protobuf" | "json";

export const OTLP_TYPES: Record<OtlpEncoding, string> = {
  protobuf: "application/x-protobuf",
  json: "application/json",
};

/** Throws `ProtocolError` if the content type is that of no encoding. */
export function otlpEncoding(contentType: string | undefined): OtlpEncoding {
  const type = (contentType ?? "").split(";")[0]?.trim().toLowerCase();
  if (type === OTLP_TYPES.protobuf) return "protobuf";
  if (type === OTLP_TYPES.json) return "json";
  throw new ProtocolError("unsupported", "The content type must be application/x-protobuf or application/json");
}

/**
 * @param resourceLabels the attributes of resources that become labels
 * @param naming the attributes of resources that name the agent
 */
export function decodeOtlp(
  body: Uint8Array,
  encoding: OtlpEncoding,
  resourceLabels: readonly string[],
  naming: readonly string[] = [],
): Decoded {
  return toPoints(encoding === "json" ? readJsonRequest(body) : readRequest(body), resourceLabels, naming);
}

/** Returns `ExportMetricsServiceResponse`. It is empty if no data point was rejected. */
export function encodeOtlpResponse(encoding: OtlpEncoding, rejected: number, message: string): Uint8Array<ArrayBuffer> {
  if (encoding === "json") {
    // 64-bit integers are strings in JSON.
    const partialSuccess = { rejectedDataPoints: String(rejected), errorMessage: message };
    return jsonBytes(rejected === 0 ? {} : { partialSuccess });
  }
  const writer = new ProtobufWriter();
  if (rejected > 0) writer.writeMessage(1, writePartialSuccess, { rejected, message });
  return Uint8Array.from(writer.finish());
}

function writePartialSuccess({ rejected, message }: { rejected: number; message: string }, writer: ProtobufWriter) {
  writer.writeVarintField(1, rejected);
  writer.writeStringField(2, message);
}

/** Returns `google.rpc.Status` with a message for people. Clients decide by the HTTP status. */
export function encodeOtlpError(encoding: OtlpEncoding, message: string): Uint8Array<ArrayBuffer> {
  if (encoding === "json") return jsonBytes({ message });
  const writer = new ProtobufWriter();
  writer.writeStringField(2, message);
  return Uint8Array.from(writer.finish());
}

const jsonBytes = (value: object): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(new TextEncoder().encode(JSON.stringify(value)));
