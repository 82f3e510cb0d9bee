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

const anyJson = fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" });

type JsonType = Exclude<NonNullable<JsonSchema["type"]>, unknown[]>;

/** How often a schema may contain itself. */
const MAX_NESTING = 2;

class TooDeep extends Error {}

export class Generator {
  readonly #document: ApiDocument;
  readonly #vocabulary: Vocabulary;
  /** The references that are being resolved. */
  readonly #open: string[] = [];

  constructor(document: ApiDocument, vocabulary: Vocabulary) {
    this.#document = document;
    this.#vocabulary = vocabulary;
  }

  /** @param name of the field */
  valueOf(unresolved: JsonSchema, name = ""): fc.Arbitrary<unknown> {
    const { $ref: reference } = unresolved;
    if (reference === undefined) return this.#resolvedValueOf(unresolved, name);
    if (this.#open.filter((one) => one === reference).length === MAX_NESTING) throw new TooDeep();
    this.#open.push(reference);
    try {
      return this.#resolvedValueOf(this.#document.resolve(unresolved), name);
    } finally {
      this.#open.pop();
    }
  }

  #resolvedValueOf(schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined)
      return fc.oneof(...alternatives.flatMap((each) => this.#ifShallow(each as JsonSchema, name)));
    const known = schema.enum === undefined && schema.type !== "null" ? this.#vocabulary[name] : undefined;
    // The name of a list describes its items.
    if (known === undefined || schema.type === "array") return this.#anyOf(schema, name);
    // The document allows larger numbers than the fuzzer should request: they make requests expensive.
    if (schema.type === "integer") return known;
    return fc.oneof({ weight: WORD_WEIGHT, arbitrary: known }, this.#anyOf(schema, name));
  }

  /** A schema that contains itself has an alternative that does not. */
  #ifShallow(schema: JsonSchema, name: string): fc.Arbitrary<unknown>[] {
    try {
      return [this.valueOf(schema, name)];
    } catch (error) {
      if (error instanceof TooDeep) return [];
      throw error;
    }
  }

  #anyOf(schema: JsonSchema, name: string): fc.Arbitrary<unknown> {
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const types = [schema.type ?? []].flat();
    return types.length === 0 ? anyJson : fc.oneof(...types.map((type) => this.#ofType[type](schema, name)));
  }

  readonly #ofType: Record<JsonType, (schema: JsonSchema, name: string) => fc.Arbitrary<unknown>> = {
    null: () => fc.constant(null),
    boolean: () => fc.boolean(),
    integer: integers,
    number: numbers,
    string: strings,
    array: ({ items = {}, minItems: minLength = 0, maxItems = MAX_ITEMS }, name) =>
      fc.array(this.valueOf(items as JsonSchema, name), { minLength, maxLength: Math.min(maxItems, MAX_ITEMS) }),
    object: ({ properties = {}, required: requiredKeys = [], additionalProperties }) => {
      const field = ([name, schema]: [string, unknown]) => [name, this.valueOf(schema as JsonSchema, name)] as const;
      const known = fc.record(Object.fromEntries(Object.entries(properties).map(field)), { requiredKeys });
      if (typeof additionalProperties !== "object") return known;
      const value = this.valueOf(additionalProperties as JsonSchema);
      const others = fc.dictionary(fc.string({ maxLength: 20 }), value, { maxKeys: MAX_ITEMS });
      return fc.tuple(others, known).map(([some, fields]) => ({ ...some, ...fields }));
    },
  };
}

/** The draft of the document has numbers, never booleans, as exclusive bounds. */
type Bounds = Partial<Record<"minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", number>>;

function integers(schema: JsonSchema): fc.Arbitrary<number> {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema as Bounds;
  return fc.integer({
    min: above === undefined ? (minimum ?? Number.MIN_SAFE_INTEGER) : above + 1,
    max: below === undefined ? (maximum ?? Number.MAX_SAFE_INTEGER) : below - 1,
  });
}

function numbers(schema: JsonSchema): fc.Arbitrary<number> {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema as Bounds;
  const [minExcluded, maxExcluded] = [above !== undefined, below !== undefined];
  const [min, max] = [above ?? minimum ?? -Number.MAX_VALUE, below ?? maximum ?? Number.MAX_VALUE];
  return fc.double({ min, max, minExcluded, maxExcluded, noNaN: true });
}

function strings({ pattern, minLength = 0, maxLength = MAX_LENGTH }: JsonSchema): fc.Arbitrary<string> {
  const length = { minLength, maxLength: Math.max(minLength, Math.min(maxLength, MAX_LENGTH)) };
  // The document counts code points, of which a grapheme may have several.
  const fits = (text: string): boolean => text.length >= minLength && [...text].length <= maxLength;
  if (pattern === undefined) return fc.string({ unit: "grapheme", ...length }).filter(fits);
  return fc.stringMatching(new RegExp(pattern, "u"), { maxLength: length.maxLength }).filter(fits);
}
