import { toBase64 } from "../../../src/lib/encoding.ts";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import { encodeRequest, type Json } from "../../support/protocols/otlp-protobuf.ts";
import { type Series, writeRequest } from "../../support/protocols/remote-write.ts";
import { bearer, PASSWORD, request } from "../support.ts";
import { data, values } from "../telemetry/requests.ts";

export const PROMETHEUS = "/api/v1/prometheus/write";
export const OTLP = "/api/v1/otlp/v1/metrics";
export const INFLUX = "/api/v1/influx/api/v2/write";
/** The address of InfluxDB 2 itself. */
export const INFLUX_2 = "/api/v2/write";
export const INFLUX_1 = "/api/v1/influx/write";
export const openWisp = (apId: string, query = ""): string =>
  `/api/v1/openwisp/api/v1/monitoring/device/${apId}/${query}`;

type Body = string | Uint8Array<ArrayBuffer>;

export const post = (path: string, body: Body, headers: Record<string, string>): Promise<Response> =>
  request(path, { method: "POST", headers, body });

const REMOTE_WRITE_HEADERS = {
  "Content-Type": "application/x-protobuf",
  "Content-Encoding": "snappy",
  "X-Prometheus-Remote-Write-Version": "0.1.0",
};

export const postSeries = (series: Series[], token: string, headers: Record<string, string> = {}): Promise<Response> =>
  post(PROMETHEUS, compressSnappy(writeRequest(series)), { ...REMOTE_WRITE_HEADERS, ...bearer(token), ...headers });

export const postBlock = (block: Uint8Array<ArrayBuffer>, token: string): Promise<Response> =>
  post(PROMETHEUS, block, { ...REMOTE_WRITE_HEADERS, ...bearer(token) });

export const postOtlp = (body: Json, token: string, encoding: "json" | "protobuf" = "json"): Promise<Response> =>
  encoding === "json"
    ? post(OTLP, JSON.stringify(body), { "Content-Type": "application/json", ...bearer(token) })
    : post(OTLP, Uint8Array.from(encodeRequest(body)), { "Content-Type": "application/x-protobuf", ...bearer(token) });

export const postLines = (lines: string, token: string, query = "?precision=ms"): Promise<Response> =>
  post(`${INFLUX}${query}`, lines, { "Content-Type": "text/plain", ...bearer(token) });

export const basic = (name: string, password = PASSWORD): { Authorization: string } => ({
  Authorization: `Basic ${toBase64(new TextEncoder().encode(`${name}:${password}`))}`,
});

export async function gzip(body: Body): Promise<Uint8Array<ArrayBuffer>> {
  const compressed = new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(compressed).arrayBuffer());
}

/** Returns the stored values of an agent by metric. */
export const storedOf = async (apId: string, token: string) => values((await data(apId, token)).series);
