import { formatInfluxName, type Labels } from "../metric-name.ts";
import {
  type Decoded,
  isTooLong,
  MAX_LABELS,
  MAX_POINTS,
  NAME_TOO_LONG,
  PointCollector,
  tooManyPoints,
} from "../point.ts";
import { malformed, ProtocolError } from "../protocol-error.ts";
import { LineReader, LineSyntaxError } from "./line-reader.ts";

/** InfluxDB's line protocol: `measurement,tag=value field=value,field=value timestamp`. Each field is a point. */

const NS_PER_UNIT: Record<string, bigint> = {
  ...{ ns: 1n, n: 1n, us: 1_000n, u: 1_000n, µ: 1_000n, ms: 1_000_000n, s: 1_000_000_000n },
  ...{ m: 60_000_000_000n, h: 3_600_000_000_000n },
};
const NS_PER_MS = 1_000_000n;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Decodes lines. One that is invalid is rejected with its number, and does not affect the others.
 *
 * @param precision of the timestamps. Undefined: nanoseconds
 */
export function decodeLines(body: Uint8Array, precision: string | undefined): Decoded {
  const nsPerUnit = NS_PER_UNIT[precision ?? "ns"];
  if (nsPerUnit === undefined || !Object.hasOwn(NS_PER_UNIT, precision ?? "ns")) {
    throw malformed("The precision must be ns, us, ms or s");
  }
  const collector = new PointCollector();
  const reader = new LineReader(decode(body));
  while (reader.nextLine()) {
    const origin = reader.line;
    try {
      const { measurement, tags, fields, timestamp } = readLine(reader);
      const tsMs = timestamp === undefined ? undefined : Number((timestamp * nsPerUnit) / NS_PER_MS);
      // Written once for all fields.
      const prefix = formatInfluxName(measurement, "");
      for (const [field, value] of fields) {
        collector.add({ name: `${prefix}${field}`, labels: tags, tsMs, value, origin });
      }
    } catch (error) {
      if (!(error instanceof LineSyntaxError)) throw error;
      collector.reject({ name: `line ${origin}`, reason: error.message, origin });
      reader.skipLine();
    }
  }
  return collector;
}

function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch {
    throw new ProtocolError("malformed", "The body is not UTF-8");
  }
}

interface Line {
  measurement: string;
  tags: Labels;
  fields: [key: string, value: number | string][];
  timestamp: bigint | undefined;
}

function readLine(reader: LineReader): Line {
  const measurement = reader.text(", ");
  if (measurement === "") throw new LineSyntaxError("has no measurement");
  if (isTooLong(measurement)) throw new LineSyntaxError(NAME_TOO_LONG);
  const tags: [string, string][] = [];
  while (reader.take(",")) {
    const key = reader.text("=, ");
    if (key === "" || !reader.take("=")) throw new LineSyntaxError("has a tag without a name or a value");
    const value = reader.text("=, ");
    if (value === "") throw new LineSyntaxError("has a tag without a name or a value");
    tags.push([key, value]);
    if (tags.length > MAX_LABELS) throw new LineSyntaxError(`has more than ${MAX_LABELS} tags`);
  }
  const labels = Object.fromEntries(tags);
  if (Object.keys(labels).length < tags.length) throw new LineSyntaxError("has a tag twice");
  if (!reader.takeSpaces()) throw new LineSyntaxError("has no fields");
  const fields: Line["fields"] = [];
  do {
    fields.push(readField(reader));
    if (fields.length > MAX_POINTS) throw tooManyPoints();
  } while (reader.take(","));
  const timestamp = reader.takeSpaces() ? readTimestamp(reader) : undefined;
  reader.takeSpaces();
  if (!reader.isAtEndOfLine) throw new LineSyntaxError("has text after its fields or its timestamp");
  return { measurement, tags: labels, fields, timestamp };
}

function readField(reader: LineReader): [key: string, value: number | string] {
  const key = reader.text("=, ");
  if (key === "" || !reader.take("=")) throw new LineSyntaxError("has a field without a name or a value");
  if (isTooLong(key)) throw new LineSyntaxError(NAME_TOO_LONG);
  return [key, reader.take('"') ? reader.quoted() : toValue(reader.text(", "))];
}

/** Only one part can match each digit: otherwise the time would grow with the square of their number. */
const FLOAT = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const INTEGER = /^(?:[+-]?\d+i|\d+u)$/;
const TRUE = /^(?:t|T|true|True|TRUE)$/;
const FALSE = /^(?:f|F|false|False|FALSE)$/;

function toValue(text: string): number {
  if (FLOAT.test(text)) return Number(text);
  if (INTEGER.test(text)) return Number(text.slice(0, -1));
  if (TRUE.test(text)) return 1;
  if (FALSE.test(text)) return 0;
  throw new LineSyntaxError("has a field that is no number, boolean or quoted string");
}

function readTimestamp(reader: LineReader): bigint | undefined {
  const text = reader.text(" ");
  if (text === "") return undefined;
  // 64 bits have at most 19 digits.
  if (!/^[+-]?\d{1,19}$/.test(text)) throw new LineSyntaxError("has a timestamp that is no integer");
  return BigInt(text.replace("+", ""));
}
