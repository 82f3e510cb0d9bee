import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32c } from "../../../src/protocols/prometheus/crc32c.ts";
import {
  decodeReadRequest,
  encodeFrames,
  encodeReadResponse,
  MATCHER_TYPES,
  type ReadQuery,
  type TimeSeries,
} from "../../../src/protocols/prometheus/remote-read.ts";
import { ProtobufReader, ProtobufWriter } from "../../../src/protocols/protobuf.ts";
import { ProtocolError } from "../../../src/protocols/protocol-error.ts";
import { compressSnappy, decompressSnappy } from "../../../src/protocols/snappy.ts";
import { decodeXorChunk } from "./xor-decoder.ts";

/** Encodes a request as Prometheus does. */
function encodeRequest(queries: readonly ReadQuery[], accepted: readonly number[]): Uint8Array {
  const writer = new ProtobufWriter();
  for (const query of queries) {
    writer.writeMessage(
      1,
      (_, pbf) => {
        pbf.writeVarintField(1, query.startMs);
        pbf.writeVarintField(2, query.endMs);
        for (const { type, name, value } of query.matchers) {
          pbf.writeMessage(
            3,
            (_, matcher) => {
              matcher.writeVarintField(1, MATCHER_TYPES.indexOf(type));
              matcher.writeStringField(2, name);
              matcher.writeStringField(3, value);
            },
            undefined,
          );
        }
        const { hints } = query;
        if (hints === undefined) return;
        pbf.writeMessage(
          4,
          (_, message) => {
            message.writeVarintField(1, hints.stepMs);
            message.writeStringField(2, hints.func);
            message.writeVarintField(3, hints.startMs);
            message.writeVarintField(4, hints.endMs);
          },
          undefined,
        );
      },
      undefined,
    );
  }
  if (accepted.length > 0) writer.writePackedVarint(2, [...accepted]);
  return compressSnappy(writer.finish());
}

function readLabel(reader: ProtobufReader): [string, string] {
  let [name, value] = ["", ""];
  reader.message((field) => {
    if (field === 1) name = reader.string();
    else value = reader.string();
  });
  return [name, value];
}

/** Decodes frames as Prometheus does: the length, the checksum, and the message. */
function decodeFrames(bytes: Uint8Array): { queryIndex: number; labels: [string, string][]; samples: object[] }[] {
  const frames = [];
  for (let at = 0; at < bytes.length; ) {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const message = bytes.subarray(at + 4, at + 4 + length);
    expect(new DataView(bytes.buffer, bytes.byteOffset).getUint32(at)).toBe(crc32c(message));
    at += 4 + length;
    const frame = { queryIndex: 0, labels: [] as [string, string][], samples: [] as object[] };
    const reader = new ProtobufReader(message);
    reader.fields((field) => {
      if (field === 2) frame.queryIndex = reader.uint();
      else
        reader.message((member) => {
          if (member === 1) frame.labels.push(readLabel(reader));
          else frame.samples.push(...readChunk(reader));
        });
    });
    frames.push(frame);
  }
  return frames;
}

function readChunk(reader: ProtobufReader): { tsMs: number; value: number }[] {
  const times: number[] = [];
  let samples: { tsMs: number; value: number }[] = [];
  reader.message((field) => {
    if (field === 4) samples = decodeXorChunk(reader.bytes());
    else if (field === 3) expect(reader.uint()).toBe(1);
    else times.push(reader.int());
  });
  expect(times).toEqual([samples[0]?.tsMs, samples.at(-1)?.tsMs]);
  return samples;
}

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
    const reader = new ProtobufReader(decompressSnappy(encodeReadResponse([[first, second], []]), 1_000_000));
    const results: TimeSeries[][] = [];
    reader.fields(() => {
      const result: TimeSeries[] = [];
      reader.message(() => {
        const labels: [string, string][] = [];
        const samples: { tsMs: number; value: number }[] = [];
        reader.message((field) => {
          if (field === 1) labels.push(readLabel(reader));
          else {
            const sample = { tsMs: 0, value: 0 };
            reader.message((member) => {
              if (member === 1) sample.value = reader.double();
              else sample.tsMs = reader.int();
            });
            samples.push(sample);
          }
        });
        result.push({ labels, samples });
      });
      results.push(result);
    });
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
