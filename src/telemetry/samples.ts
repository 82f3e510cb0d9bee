import { TooLarge } from "../lib/errors.ts";
import { MAX_NAME_LENGTH, shortened } from "../protocols/metric-name.ts";
import type { Protocol } from "../schemas/metrics.ts";

/** Turns the payload of a report into a sample: numbers are metrics, strings are texts, each under a flat name. */

/** Field name → value. */
export type Payload = Record<string, unknown>;

/** The field names are those of the JSON that the Worker sends to the shard: do not rename them. */
export interface Sample {
  tsMs: number;
  metrics: Record<string, number>;
  texts: Record<string, string>;
}

/** How samples arrive. */
export interface Source {
  protocol: Protocol;
  /** The app that sends for the agent. */
  app?: string | undefined;
}

export interface Rejection {
  field: string;
  reason: string;
}

/** Clocks differ. A sample further ahead than this would stay the newest of its agent for too long. */
export const MAX_AHEAD_MS = 5 * 60_000;
/** Agents send a sample every few seconds, and a day of samples must stay readable. Longer strings do not belong in telemetry. */
export const MAX_STRING_LENGTH = 16_384;

/** Characters of the names of all values of a report. Each value in an object repeats the name of the object. */
const MAX_NAMES_LENGTH = 4 * 1024 * 1024;

/** Flattens the payloads of one report. */
export class Flattener {
  #namesLength = 0;

  /** Every value is either in the sample or, by name, in the rejections. Throws `TooLarge` if the names of the report are too long. */
  toSample(tsMs: number, payload: Payload): { sample: Sample; rejected: Rejection[] } {
    const sample: Sample = { tsMs, metrics: {}, texts: {} };
    const rejected: Rejection[] = [];
    for (const [field, value] of flatten(payload, "")) {
      this.#namesLength += field.length;
      if (this.#namesLength > MAX_NAMES_LENGTH) throw new TooLarge("The names of all values together are");
      const reason = addValue(sample, field, value);
      if (reason !== undefined) rejected.push({ field: shortened(field), reason });
    }
    return { sample, rejected };
  }
}

/** Adds a value to a sample. Returns why the sample cannot hold it, or `undefined` if it can. */
export function addValue(sample: Sample, field: string, value: unknown): string | undefined {
  const reason = rejectionReason(sample, field, value);
  if (reason !== undefined) return reason;
  if (typeof value === "string") sample.texts[field] = value;
  else sample.metrics[field] = Number(value);
  return undefined;
}

export const countValues = ({ metrics, texts }: Sample): number =>
  Object.keys(metrics).length + Object.keys(texts).length;

function* flatten(payload: object, prefix: string): Generator<[string, unknown]> {
  for (const [key, value] of Object.entries(payload)) {
    const name = `${prefix}${key}`;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    // If the name of an object is too long, so are those of its values. It is rejected as a whole.
    if (isObject && name.length <= MAX_NAME_LENGTH) yield* flatten(value, `${name}.`);
    else yield [name, value];
  }
}

/** Returns why the sample cannot hold the value, or `undefined` if it can. */
function rejectionReason({ metrics, texts }: Sample, field: string, value: unknown): string | undefined {
  if (field === "") return "has no name";
  // An assignment would not add it to the object.
  if (field === "__proto__") return "has a name that is reserved";
  if (field.length > MAX_NAME_LENGTH) return `has a name of more than ${MAX_NAME_LENGTH} characters`;
  // UTF-8 cannot encode a lone surrogate. ClickHouse would reject the whole insert, with the samples of other agents.
  if (!field.isWellFormed()) return "has a name with a lone surrogate";
  if (Object.hasOwn(metrics, field) || Object.hasOwn(texts, field)) return "is given twice";
  if (typeof value === "string" && value.length > MAX_STRING_LENGTH)
    return `is a text of more than ${MAX_STRING_LENGTH} characters`;
  if (typeof value === "string" && !value.isWellFormed()) return "is a text with a lone surrogate";
  if (value === null) return "is null";
  if (Array.isArray(value)) return "is an array";
  if (typeof value === "number" && !Number.isFinite(value)) return "is not a finite number";
  return undefined;
}
