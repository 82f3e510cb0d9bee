import { ProtobufWriter } from "../../../src/protocols/protobuf.ts";

export interface Series {
  labels: Record<string, string> | [string, string][];
  samples: [value: number, tsMs: number][];
  /** Number of native histograms. */
  histograms?: number;
}

const writePair = ([key, value]: [string, string], writer: ProtobufWriter) => {
  writer.writeStringField(1, key);
  writer.writeStringField(2, value);
};
const writeSample = ([value, tsMs]: [number, number], writer: ProtobufWriter) => {
  writer.writeDoubleField(1, value);
  writer.writeVarintField(2, tsMs);
};

/** Returns `WriteRequest` of Prometheus as protobuf, not compressed. */
export function writeRequest(series: Series[]): Uint8Array {
  const writer = new ProtobufWriter();
  for (const { labels, samples, histograms = 0 } of series) {
    writer.writeMessage(
      1,
      (_, inner) => {
        for (const pair of Array.isArray(labels) ? labels : Object.entries(labels))
          inner.writeMessage(1, writePair, pair);
        for (const sample of samples) inner.writeMessage(2, writeSample, sample);
        for (let i = 0; i < histograms; i += 1) inner.writeBytesField(4, Uint8Array.of());
      },
      undefined,
    );
  }
  // Metadata, which the decoder ignores.
  writer.writeMessage(3, (_, inner) => inner.writeVarintField(1, 1), undefined);
  return writer.finish();
}
