import type { PbfWriter } from "pbf";
import { ProtobufReader, ProtobufWriter } from "../protobuf.ts";
import { malformed } from "../protocol-error.ts";
import { compressSnappy, decompressSnappy } from "../snappy.ts";
import { crc32c } from "./crc32c.ts";
import { type ChunkSample, encodeXorChunk, MAX_CHUNK_SAMPLES } from "./xor-chunk.ts";

/** The messages of Prometheus' remote read protocol: https://prometheus.io/docs/prometheus/latest/querying/remote_read_api/ */

export const MATCHER_TYPES = ["=", "!=", "=~", "!~"] as const;

export interface Matcher {
  type: (typeof MATCHER_TYPES)[number];
  name: string;
  value: string;
}

export interface ReadQuery {
  startMs: number;
  endMs: number;
  /** All of them must match. */
  matchers: Matcher[];
  hints: ReadHints | undefined;
}

/** What the query is for. A server may ignore it. */
export interface ReadHints {
  stepMs: number;
  /** The PromQL function around the selector, or `series` if only labels are needed. */
  func: string;
  startMs: number;
  endMs: number;
}

export interface ReadRequest {
  queries: ReadQuery[];
  /** `samples`: one message with all samples. `chunks`: a stream of frames with XOR chunks. */
  responseType: "samples" | "chunks";
}

/** A time series, or a part of it in time. Its labels include `__name__` and are sorted by the bytes of their names. */
export interface TimeSeries {
  labels: readonly (readonly [name: string, value: string])[];
  samples: readonly ChunkSample[];
}

const MAX_QUERIES = 16;
const MAX_MATCHERS = 64;
const MAX_REQUEST_BYTES = 1024 * 1024;
const STREAMED_XOR_CHUNKS = 1;
const XOR = 1;
/** As in Prometheus. Its readers reject frames of more than 50 MB. */
const MAX_FRAME_BYTES = 1024 * 1024;

/** Response types that a client accepts. There are two. */
const MAX_TYPES = 16;

/** Decodes the body of a request. Throws `ProtocolError`. */
export function decodeReadRequest(body: Uint8Array): ReadRequest {
  const reader = new ProtobufReader(decompressSnappy(body, MAX_REQUEST_BYTES));
  const queries: ReadQuery[] = [];
  const accepted: number[] = [];
  reader.fields((field) => {
    if (field === 1) {
      if (queries.length === MAX_QUERIES) throw malformed(`A request has at most ${MAX_QUERIES} queries`);
      queries.push(readQuery(reader));
    } else if (field === 2) reader.uints(accepted, MAX_TYPES);
  });
  // The first type that the server knows. Without a list, the client is older than the second type.
  const type = accepted.find((one) => one === 0 || one === STREAMED_XOR_CHUNKS);
  if (type === undefined && accepted.length > 0) throw malformed("The client accepts no response type of this server");
  return { queries, responseType: type === STREAMED_XOR_CHUNKS ? "chunks" : "samples" };
}

function readQuery(reader: ProtobufReader): ReadQuery {
  const query: ReadQuery = { startMs: 0, endMs: 0, matchers: [], hints: undefined };
  reader.message((field) => {
    if (field === 1) query.startMs = reader.int();
    else if (field === 2) query.endMs = reader.int();
    else if (field === 3) {
      if (query.matchers.length === MAX_MATCHERS) throw malformed(`A query has at most ${MAX_MATCHERS} matchers`);
      query.matchers.push(readMatcher(reader));
    } else if (field === 4) query.hints = readHints(reader);
  });
  return query;
}

function readMatcher(reader: ProtobufReader): Matcher {
  let [number, name, value] = [0, "", ""];
  reader.message((field) => {
    if (field === 1) number = reader.uint();
    else if (field === 2) name = reader.string();
    else if (field === 3) value = reader.string();
  });
  const type = MATCHER_TYPES[number];
  if (type === undefined) throw malformed("A matcher has an unknown type");
  return { type, name, value };
}

function readHints(reader: ProtobufReader): ReadHints {
  const hints: ReadHints = { stepMs: 0, func: "", startMs: 0, endMs: 0 };
  reader.message((field) => {
    if (field === 1) hints.stepMs = reader.int();
    else if (field === 2) hints.func = reader.string();
    else if (field === 3) hints.startMs = reader.int();
    else if (field === 4) hints.endMs = reader.int();
  });
  return hints;
}

/** Encodes the response of type `samples`: one list of series for each query, in their order. */
export function encodeReadResponse(results: readonly (readonly TimeSeries[])[]): Uint8Array<ArrayBuffer> {
  const writer = new ProtobufWriter();
  for (const result of results) writer.writeMessage(1, writeResult, result);
  return compressSnappy(writer.finish());
}

function writeResult(result: readonly TimeSeries[], writer: PbfWriter): void {
  for (const series of result) writer.writeMessage(1, writeSeries, series);
}

function writeSeries({ labels, samples }: TimeSeries, writer: PbfWriter): void {
  for (const label of labels) writer.writeMessage(1, writeLabel, label);
  for (const sample of samples) writer.writeMessage(2, writeSample, sample);
}

function writeLabel([name, value]: readonly [string, string], writer: PbfWriter): void {
  writer.writeStringField(1, name);
  writer.writeStringField(2, value);
}

function writeSample({ tsMs, value }: ChunkSample, writer: PbfWriter): void {
  writer.writeDoubleField(1, value);
  writer.writeVarintField(2, tsMs);
}

/** Yields the frames of a series, of type `chunks`. Each is a message with its length and its checksum before it. */
export function* encodeFrames(queryIndex: number, { labels, samples }: TimeSeries): Generator<Uint8Array<ArrayBuffer>> {
  for (let start = 0; start < samples.length; ) {
    const writer = new ProtobufWriter();
    writer.writeMessage(
      1,
      (_, series) => {
        for (const label of labels) series.writeMessage(1, writeLabel, label);
        for (; start < samples.length && series.pos < MAX_FRAME_BYTES; start += MAX_CHUNK_SAMPLES) {
          series.writeMessage(2, writeChunk, samples.slice(start, start + MAX_CHUNK_SAMPLES));
        }
      },
      undefined,
    );
    writer.writeVarintField(2, queryIndex);
    yield toFrame(writer.finish());
  }
}

function writeChunk(samples: readonly ChunkSample[], writer: PbfWriter): void {
  writer.writeVarintField(1, samples[0]?.tsMs ?? 0);
  writer.writeVarintField(2, samples.at(-1)?.tsMs ?? 0);
  writer.writeVarintField(3, XOR);
  writer.writeBytesField(4, encodeXorChunk(samples));
}

function toFrame(message: Uint8Array): Uint8Array<ArrayBuffer> {
  const length: number[] = [];
  let rest = message.length;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) length.push((rest & 0x7f) | 0x80);
  length.push(rest);
  const frame = new Uint8Array(length.length + 4 + message.length);
  frame.set(length);
  new DataView(frame.buffer).setUint32(length.length, crc32c(message));
  frame.set(message, length.length + 4);
  return frame;
}
