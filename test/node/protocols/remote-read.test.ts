import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeReadRequest,
  encodeFrames,
  encodeReadResponse,
  MATCHER_TYPES,
  type ReadQuery,
  type TimeSeries,
} from "../../../src/protocols/prometheus/remote-read.ts";
import { ProtocolError } from "../../../src/protocols/protocol-error.ts";
import { compressSnappy } from "../../../src/protocols/snappy.ts";
import { decodeFrames, decodeReadResponse, encodeRequest } from "../../support/protocols/remote-read.ts";

const concat = (parts: Iterable<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat([...parts]));
const seriesOf = (count: number): TimeSeries => ({
  labels: [
    ["__name__", "load"],
    ["instance", "ap-ä😀"],
  ],
  samples: Array.from({ length: count }, (_, i) => ({ tsMs: 1_700_000_000_000 + i * 1_000, value: Math.sin(i) })),
});

describe("a remote read request", () => {
  const query: ReadQuery = {
    startMs: 1_700_000_000_000,
    endMs: 1_700_000_300_000,
    matchers: MATCHER_TYPES.map((type) => ({ type, name: "instance", value: "ap-1|ap-2" })),
    hints: { stepMs: 15_000, func: "rate", startMs: 1_700_000_000_001, endMs: 1_700_000_300_000 },
  };

  it("is decoded with its matchers and hints", () => {
    expect(decodeReadRequest(encodeRequest([query], [1, 0]))).toEqual({ queries: [query], responseType: "chunks" });
  });

  it.each([
    [[], "samples"],
    [[0], "samples"],
    [[7, 1, 0], "chunks"],
    [[0, 1], "samples"],
  ])("that accepts %j gets %s", (accepted, type) => {
    expect(decodeReadRequest(encodeRequest([query], accepted)).responseType).toBe(type);
  });

  it.each([
    ["is not compressed", new Uint8Array([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
    ["accepts no known type", encodeRequest([query], [7])],
    ["has too many queries", encodeRequest(new Array<ReadQuery>(17).fill(query), [])],
    ["has too many matchers", encodeRequest([{ ...query, matchers: new Array(65).fill(query.matchers[0]) }], [])],
  ])("that %s is rejected", (_, body) => {
    expect(() => decodeReadRequest(body)).toThrow(ProtocolError);
  });

  it("of any bytes is decoded or rejected", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, isBlock) => {
        try {
          decodeReadRequest(isBlock ? compressSnappy(bytes) : bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a remote read response", () => {
  it("of type samples has every series of each query", () => {
    const [first, second] = [seriesOf(3), seriesOf(1)];
    const results = decodeReadResponse(encodeReadResponse([[first, second], []]));
    expect(results).toEqual([[first, second], []]);
  });

  it.each([1, 120, 121, 500])("of type chunks has all of %i samples in one frame", (count) => {
    const series = seriesOf(count);
    expect(decodeFrames(concat(encodeFrames(3, series)))).toEqual([{ queryIndex: 3, ...series }]);
  });

  it("of type chunks divides a long series into frames of about a mebibyte", () => {
    const random = {
      ...seriesOf(0),
      samples: seriesOf(300_000).samples.map(({ tsMs }, i) => ({ tsMs, value: 1 / (i + 3) })),
    };
    const encoded = [...encodeFrames(0, random)];
    expect(encoded.length).toBeGreaterThan(1);
    for (const frame of encoded) expect(frame.length).toBeLessThan(1.1 * 1024 * 1024);
    const frames = decodeFrames(concat(encoded));
    expect(new Set(frames.map(({ labels }) => JSON.stringify(labels))).size).toBe(1);
    expect(frames.flatMap(({ samples }) => samples)).toEqual(random.samples);
  });

  it("has no frame for a series without samples", () => {
    expect([...encodeFrames(0, seriesOf(0))]).toEqual([]);
  });
});
