/** What an agent sends, as what is stored: one number per metric and one text per text field, each under a flat name. */

/** Field name → value. */
export type Payload = Record<string, unknown>;

export interface Sample {
  tsMs: number;
  metrics: Record<string, number>;
  texts: Record<string, string>;
}

export interface Rejection {
  field: string;
  reason: string;
}

export const MAX_NAME_LENGTH = 256;
/** An agent says something every few seconds: what is longer is not for this, and a day of it must be readable. */
export const MAX_TEXT_LENGTH = 16_384;

/** Flattens a payload. Every value ends up either in the sample or, by name, among the rejections. */
export function toSample(tsMs: number, payload: Payload): { sample: Sample; rejected: Rejection[] } {
  const sample: Sample = { tsMs, metrics: {}, texts: {} };
  const rejected: Rejection[] = [];
  for (const [field, value] of flatten(payload, "")) {
    const reason = whyNot(sample, field, value);
    if (reason !== undefined) rejected.push({ field, reason });
    else if (typeof value === "string") sample.texts[field] = value;
    else sample.metrics[field] = Number(value);
  }
  return { sample, rejected };
}

export const countValues = ({ metrics, texts }: Sample): number =>
  Object.keys(metrics).length + Object.keys(texts).length;

function* flatten(payload: object, prefix: string): Generator<[string, unknown]> {
  for (const [key, value] of Object.entries(payload)) {
    const name = `${prefix}${key}`;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) yield* flatten(value, `${name}.`);
    else yield [name, value];
  }
}

function whyNot({ metrics, texts }: Sample, field: string, value: unknown): string | undefined {
  if (field === "") return "has no name";
  // Half a surrogate pair has no form in UTF-8: ClickHouse would reject the whole insert, with what other agents sent.
  if (!field.isWellFormed()) return "has a name with a lone surrogate";
  if (field.length > MAX_NAME_LENGTH) return `has a name of more than ${MAX_NAME_LENGTH} characters`;
  if (Object.hasOwn(metrics, field) || Object.hasOwn(texts, field)) return "is given twice";
  if (typeof value === "string" && value.length > MAX_TEXT_LENGTH)
    return `is a text of more than ${MAX_TEXT_LENGTH} characters`;
  if (typeof value === "string" && !value.isWellFormed()) return "is a text with a lone surrogate";
  if (value === null) return "is null";
  if (Array.isArray(value)) return "is an array";
  if (typeof value === "number" && !Number.isFinite(value)) return "is not a finite number";
  return undefined;
}
