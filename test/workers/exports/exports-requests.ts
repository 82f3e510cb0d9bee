import { expect } from "vitest";
import type { Matcher } from "../../../src/protocols/prometheus/remote-read.ts";
import { decodeFrames, decodeReadResponse, encodeRequest } from "../../support/protocols/remote-read.ts";
import { bearer, request } from "../support.ts";

export interface ReadSeries {
  labels: Record<string, string>;
  samples: { tsMs: number; value: number }[];
}

export const equal = (name: string, value: string): Matcher => ({ type: "=", name, value });

export const postRead = async (token: string, body: Uint8Array<ArrayBuffer> | string): Promise<Response> =>
  await request("/api/v1/prometheus/read", {
    method: "POST",
    headers: { "Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", ...bearer(token) },
    body,
  });

/** Reads as Prometheus does. */
export async function readSeries(
  token: string,
  matchers: Matcher[],
  { startMs, endMs }: { startMs: number; endMs: number },
  type: "samples" | "chunks" = "chunks",
): Promise<ReadSeries[]> {
  const query = { startMs, endMs, matchers, hints: undefined };
  const response = await postRead(token, encodeRequest([query], type === "chunks" ? [1, 0] : []));
  expect(response.status, await response.clone().text()).toBe(200);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (type === "chunks") {
    expect(response.headers.get("Content-Type")).toBe(
      "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse",
    );
    return decodeFrames(bytes).map(toReadSeries);
  }
  expect(response.headers.get("Content-Type")).toBe("application/x-protobuf");
  expect(response.headers.get("Content-Encoding")).toBe("snappy");
  return (decodeReadResponse(bytes)[0] ?? []).map(toReadSeries);
}

const toReadSeries = ({
  labels,
  samples,
}: {
  labels: readonly (readonly [string, string])[];
  samples: readonly object[];
}): ReadSeries => ({ labels: Object.fromEntries(labels), samples: samples as ReadSeries["samples"] });
