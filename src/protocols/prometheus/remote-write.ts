import { shortened } from "../metric-name.ts";
import { type Decoded, MAX_LABELS, MAX_POINTS, PointCollector, tooManyPoints } from "../point.ts";
import { ProtobufReader } from "../protobuf.ts";
import { ProtocolError } from "../protocol-error.ts";
import { decompressSnappy } from "../snappy.ts";

/** Prometheus remote write 1.0: `WriteRequest`, compressed with snappy. */

const NAME_LABEL = "__name__";

/** Throws `ProtocolError` if the content type is another one than that of version 1.0, such as that of version 2.0. */
export function checkRemoteWriteType(contentType: string | undefined): void {
  const [type = "", ...parameters] = (contentType ?? "").split(";").map((part) => part.trim().toLowerCase());
  const proto = parameters.find((parameter) => parameter.startsWith("proto="));
  // Without the parameter, the message is that of version 1.0.
  if (type === "application/x-protobuf" && (proto === undefined || proto === "proto=prometheus.writerequest")) return;
  throw new ProtocolError("unsupported", "The content type must be application/x-protobuf of remote write 1.0");
}

export function decodeRemoteWrite(body: Uint8Array, maxBytes: number): Decoded {
  const reader = new ProtobufReader(decompressSnappy(body, maxBytes));
  const collector = new PointCollector();
  // The other fields are metadata.
  reader.fields((field) => {
    if (field === 1) readSeries(reader, collector);
  });
  return collector;
}

function readSeries(reader: ProtobufReader, collector: PointCollector): void {
  const labels: [name: string, value: string][] = [];
  const samples: { value: number; tsMs: number }[] = [];
  let histograms = 0;
  reader.message((field) => {
    if (field === 1) {
      if (labels.length <= MAX_LABELS) labels.push(readLabel(reader));
    } else if (field === 2) {
      samples.push(readSample(reader));
      if (samples.length > MAX_POINTS) throw tooManyPoints();
    } else if (field === 4) histograms += 1;
  });
  addSeries(collector, labels, samples, histograms);
}

function addSeries(
  collector: PointCollector,
  pairs: readonly [string, string][],
  samples: readonly { value: number; tsMs: number }[],
  histograms: number,
): void {
  // A label without a value is the same as no label.
  const { [NAME_LABEL]: name = "", ...labels } = Object.fromEntries(pairs.filter(([, value]) => value !== ""));
  const reject = (reason: string) => collector.reject({ name: shortened(name), reason });
  if (pairs.length > MAX_LABELS) reject(`has more than ${MAX_LABELS} labels`);
  else if (name === "") reject("has no name");
  else if (new Set(pairs.map(([key]) => key)).size < pairs.length) reject("has a label twice");
  else {
    if (histograms > 0) reject("is a native histogram, which is not supported");
    for (const { value, tsMs } of samples) {
      // A stale marker is NaN: the series has ended. Any other NaN is a value that the sender could not compute.
      if (!Number.isNaN(value)) collector.add({ name, labels, tsMs, value });
    }
  }
}

function readLabel(reader: ProtobufReader): [name: string, value: string] {
  const label: [string, string] = ["", ""];
  reader.message((field) => {
    if (field === 1) label[0] = reader.string();
    else if (field === 2) label[1] = reader.string();
  });
  return label;
}

function readSample(reader: ProtobufReader): { value: number; tsMs: number } {
  const sample = { value: 0, tsMs: 0 };
  reader.message((field) => {
    if (field === 1) sample.value = reader.double();
    else if (field === 2) sample.tsMs = reader.int();
  });
  return sample;
}
