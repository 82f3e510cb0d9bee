import { expect } from "vitest";
import { crc32c } from "../../../src/protocols/prometheus/crc32c.ts";
import { MATCHER_TYPES, type ReadQuery, type TimeSeries } from "../../../src/protocols/prometheus/remote-read.ts";
import { ProtobufReader, ProtobufWriter } from "../../../src/protocols/protobuf.ts";
import { compressSnappy, decompressSnappy } from "../../../src/protocols/snappy.ts";
import { decodeXorChunk } from "./xor-decoder.ts";

/** The client's side of Prometheus' remote read protocol. */

/** Encodes a request as Prometheus does. */
export function encodeRequest(queries: readonly ReadQuery[], accepted: readonly number[]): Uint8Array<ArrayBuffer> {
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
export function decodeFrames(
  bytes: Uint8Array,
): { queryIndex: number; labels: [string, string][]; samples: object[] }[] {
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

/** Decodes a response with samples: a list of series for each query. */
export function decodeReadResponse(body: Uint8Array): TimeSeries[][] {
  const reader = new ProtobufReader(decompressSnappy(body, 100_000_000));
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
  return results;
}
