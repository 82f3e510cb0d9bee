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

export function nearlyValid(document: ApiDocument, operation: Operation, values: Values): fc.Arbitrary<Values> {
  const sites = sitesOf(document, operation, values);
  if (sites.length === 0) return fc.constant(values);
  return fc
    .constantFrom(...sites)
    .chain((site) => wrong(site).map((value) => replaced(values, site.path, value) as Values));
}

export function hostile(document: ApiDocument, operation: Operation, values: Values): fc.Arbitrary<Values> {
  const sites = sitesOf(document, operation, values);
  if (sites.length === 0) return fc.constant(values);
  return fc.tuple(fc.constantFrom(...sites), hostileValue, fc.boolean()).map(([site, value, isExtra]) => {
    const holds = isExtra && typeof site.value === "object" && site.value !== null && !Array.isArray(site.value);
    const path = holds ? [...site.path, typeof value === "string" ? value.slice(0, 2_000) : "extra"] : site.path;
    return replaced(values, path, value) as Values;
  });
}

function sitesOf(document: ApiDocument, { parameters, body }: Operation, values: Values): Site[] {
  // The fuzzer sends no header parameters.
  const ofParameters = parameters.flatMap(({ name, in: place, schema }) =>
    place === "header" ? [] : [{ path: [place, name], schema, value: values[place][name] }],
  );
  return body === undefined ? ofParameters : [...ofParameters, ...within(document, ["body"], body.schema, values.body)];
}

function within(document: ApiDocument, path: Path, unresolved: JsonSchema, value: unknown): Site[] {
  const schema = document.resolve(unresolved);
  const site = { path, schema, value };
  if (Array.isArray(value)) {
    const items = (schema.items ?? {}) as JsonSchema;
    return [
      site,
      ...value.slice(0, MAX_SITES_PER_LIST).flatMap((item, i) => within(document, [...path, i], items, item)),
    ];
  }
  if (typeof value !== "object" || value === null) return [site];
  const fields = Object.entries(value).flatMap(([name, field]) =>
    within(document, [...path, name], (schema.properties?.[name] ?? {}) as JsonSchema, field),
  );
  return [site, ...fields];
}

const OTHER_TYPES = [true, false, 0, -1, 1.5, "text", "12", [], [[]], {}, { a: 1 }];

/** Missing, null, of another type, out of bounds, too long, of another format, or with an additional field. */
function wrong({ schema, value }: Site): fc.Arbitrary<unknown> {
  const values = [undefined, null, ...OTHER_TYPES, ...beyond(schema)];
  if (typeof value === "string") {
    values.push(`${value} `, ` ${value}`, `${value}\n`, value.toUpperCase(), "", "not@@an-address", "é".repeat(300));
  }
  if (Array.isArray(value)) values.push([...value, null], [...value, {}], value[0]);
  else if (typeof value === "object" && value !== null)
    values.push({ ...value, extra: { fields: ["are", "ignored"] } });
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
  const fields = Object.entries((whole ?? {}) as object).filter(([name]) => name !== key);
  const old = fieldOf(whole, key);
  // By entries, since an assignment to a key such as `__proto__` would set the prototype.
  return Object.fromEntries([...fields, [key, replaced(old, rest, value)]]);
}

const fieldOf = (whole: unknown, key: string | number): unknown =>
  typeof whole === "object" && whole !== null && Object.hasOwn(whole, key) ? Reflect.get(whole, key) : undefined;
