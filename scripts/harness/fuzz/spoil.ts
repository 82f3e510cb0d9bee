import * as fc from "fast-check";
import type { JsonSchema } from "../../../src/http/docs/openapi.ts";
import type { ApiDocument, Operation } from "./document.ts";
import { hostileValue } from "./hostile.ts";
import type { Values } from "./request.ts";

/** Replaces one of the values of a valid request by an invalid one. */

type Path = (string | number)[];

/** A position in a request, with its schema. */
interface Site {
  path: Path;
  schema: JsonSchema;
  value: unknown;
}

const MAX_SITES_PER_LIST = 3;

type Change = (sites: fc.Arbitrary<Site>, values: Values) => fc.Arbitrary<Values>;

export const nearlyValid: Change = (sites, values) =>
  sites.chain((site) => wrong(site).map((value) => replaced(values, site.path, value) as Values));

export const hostile: Change = (sites, values) =>
  fc.tuple(sites, hostileValue, fc.boolean()).map(([site, value, isExtra]) => {
    const key = typeof value === "string" ? value.slice(0, 2_000) : "extra";
    const path = isExtra && isObject(site.value) ? [...site.path, key] : site.path;
    return replaced(values, path, value) as Values;
  });

export function sitesOf(document: ApiDocument, { parameters, body }: Operation, values: Values): Site[] {
  // The fuzzer sends no header parameters.
  const ofParameters = parameters.flatMap(({ name, in: place, schema }) =>
    place === "header" ? [] : [{ path: [place, name], schema, value: values[place][name] }],
  );
  return body === undefined ? ofParameters : [...ofParameters, ...within(document, ["body"], body.schema, values.body)];
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function within(document: ApiDocument, path: Path, unresolved: JsonSchema, value: unknown): Site[] {
  const schema = document.resolve(unresolved);
  const children: [string | number, unknown, unknown][] = Array.isArray(value)
    ? value.slice(0, MAX_SITES_PER_LIST).map((item, i) => [i, schema.items, item])
    : Object.entries(isObject(value) ? value : {}).map(([name, field]) => [name, schema.properties?.[name], field]);
  const inside = children.flatMap(([key, child, field]) =>
    within(document, [...path, key], (child ?? {}) as JsonSchema, field),
  );
  return [{ path, schema, value }, ...inside];
}

const OTHER_TYPES = [true, false, 0, -1, 1.5, "text", "12", [], [[]], {}, { a: 1 }];

/** Missing, null, of another type, out of bounds, too long, of another format, or with an additional field. */
function wrong({ schema, value }: Site): fc.Arbitrary<unknown> {
  const values = [undefined, null, ...OTHER_TYPES, ...beyond(schema)];
  if (typeof value === "string")
    values.push(`${value} `, ` ${value}`, `${value}\n`, value.toUpperCase(), "", "not@@an-address", "é".repeat(300));
  if (Array.isArray(value)) values.push([...value, null], [...value, {}], value[0]);
  if (isObject(value)) values.push({ ...value, extra: { fields: ["are", "ignored"] } });
  return fc.constantFrom(...values);
}

/** Returns values just outside the bounds of a schema. */
function beyond(schema: JsonSchema): unknown[] {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, minLength, maxLength, minItems, maxItems } = schema;
  const list = (length: number): unknown[] => Array.from({ length }, () => "x");
  return [
    minimum === undefined ? [] : [minimum - 1, minimum - 1e-9],
    maximum === undefined ? [] : [maximum + 1, maximum * 1e6],
    exclusiveMinimum ?? [],
    exclusiveMaximum ?? [],
    minLength ? "x".repeat(minLength - 1) : [],
    maxLength === undefined ? [] : ["x".repeat(maxLength + 1), "x".repeat(maxLength * 100)],
    minItems ? [list(minItems - 1)] : [],
    maxItems === undefined ? [] : [list(maxItems + 1)],
  ].flat();
}

/** Returns a copy with another value at a path. */
function replaced(whole: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value;
  if (Array.isArray(whole)) return whole.map((item, i) => (i === key ? replaced(item, rest, value) : item));
  const fields = new Map(Object.entries((whole ?? {}) as object) as [string | number, unknown][]);
  const old = fields.get(key);
  fields.delete(key);
  // By entries, since an assignment to a key such as `__proto__` would set the prototype.
  return Object.fromEntries([...fields, [key, replaced(old, rest, value)]]);
}
