import * as fc from "fast-check";
import type { JsonSchema } from "../../../src/http/docs/openapi.ts";
import type { ApiDocument } from "./document.ts";

/** Generates values that are valid for a JSON Schema. */

/** Values that are meaningful to the service, by the name of the field. The document cannot express them. */
export type Vocabulary = Record<string, fc.Arbitrary<unknown>>;

/** Longer strings and lists are generated as hostile values only. */
const MAX_LENGTH = 200;
const MAX_ITEMS = 4;
const WORD_WEIGHT = 4;

export const anyJson = fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" });

export class Generator {
  readonly #document: ApiDocument;
  readonly #vocabulary: Vocabulary;

  constructor(document: ApiDocument, vocabulary: Vocabulary) {
    this.#document = document;
    this.#vocabulary = vocabulary;
  }

  /** @param name of the field */
  valueOf(unresolved: JsonSchema, name = ""): fc.Arbitrary<unknown> {
    const schema = this.#document.resolve(unresolved);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined)
      return fc.oneof(...alternatives.map((each) => this.valueOf(each as JsonSchema, name)));
    const known = schema.enum === undefined && schema.type !== "null" ? this.#vocabulary[name] : undefined;
    // The name of a list describes its items.
    if (known === undefined || schema.type === "array") return this.#anyOf(schema, name);
    // The document allows larger numbers than the fuzzer should request: they make requests expensive.
    if (schema.type === "integer") return known;
    return fc.oneof({ weight: WORD_WEIGHT, arbitrary: known }, this.#anyOf(schema, name));
  }

  #anyOf(schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const types = [schema.type ?? []].flat() as string[];
    return types.length === 0 ? anyJson : fc.oneof(...types.map((type) => this.#ofType(type, schema, name)));
  }

  #ofType(type: string, schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    switch (type) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return integers(schema);
      case "number":
        return numbers(schema);
      case "string":
        return strings(schema);
      case "array":
        return fc.array(this.valueOf((schema.items ?? {}) as JsonSchema, name), {
          minLength: schema.minItems ?? 0,
          maxLength: Math.min(schema.maxItems ?? MAX_ITEMS, MAX_ITEMS),
        });
      case "object":
        return this.#objects(schema);
      default:
        throw new Error(`The document has an unknown type: ${type}`);
    }
  }

  #objects({ properties = {}, required = [], additionalProperties }: JsonSchema): fc.Arbitrary<unknown> {
    const fields = Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [name, this.valueOf(schema as JsonSchema, name)]),
    );
    const known = fc.record(fields, { requiredKeys: required });
    if (typeof additionalProperties !== "object") return known;
    const others = fc.dictionary(fc.string({ maxLength: 20 }), this.valueOf(additionalProperties as JsonSchema), {
      maxKeys: MAX_ITEMS,
    });
    return fc.tuple(others, known).map(([some, fields]) => ({ ...some, ...fields }));
  }
}

/** Returns a bound if it is a number, as in the draft of the document. */
const bound = (value: number | boolean | undefined): number | undefined =>
  typeof value === "number" ? value : undefined;

function integers(schema: JsonSchema): fc.Arbitrary<number> {
  const [above, below] = [bound(schema.exclusiveMinimum), bound(schema.exclusiveMaximum)];
  return fc.integer({
    min: above === undefined ? (schema.minimum ?? Number.MIN_SAFE_INTEGER) : above + 1,
    max: below === undefined ? (schema.maximum ?? Number.MAX_SAFE_INTEGER) : below - 1,
  });
}

function numbers(schema: JsonSchema): fc.Arbitrary<number> {
  const [above, below] = [bound(schema.exclusiveMinimum), bound(schema.exclusiveMaximum)];
  return fc.double({
    min: above ?? schema.minimum ?? -Number.MAX_VALUE,
    max: below ?? schema.maximum ?? Number.MAX_VALUE,
    minExcluded: above !== undefined,
    maxExcluded: below !== undefined,
    noNaN: true,
  });
}

function strings({ pattern, minLength = 0, maxLength = MAX_LENGTH }: JsonSchema): fc.Arbitrary<string> {
  const length = { minLength, maxLength: Math.max(minLength, Math.min(maxLength, MAX_LENGTH)) };
  // The document counts code points, of which a grapheme may have several.
  const fits = (text: string): boolean => text.length >= minLength && [...text].length <= maxLength;
  if (pattern === undefined) return fc.string({ unit: "grapheme", ...length }).filter(fits);
  return fc.stringMatching(new RegExp(pattern, "u"), { maxLength: length.maxLength }).filter(fits);
}
