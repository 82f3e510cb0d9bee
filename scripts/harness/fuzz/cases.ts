import * as fc from "fast-check";
import type { ApiDocument, Operation } from "./document.ts";
import type { FuzzRequest } from "./exchange.ts";
import type { Caller } from "./fuzz-accounts.ts";
import { Generator } from "./generate.ts";
import { BOUNDARY, targetOf, toWire, type Values, type WireRequest } from "./request.ts";
import { hostile, nearlyValid } from "./spoil.ts";
import { hostileWire, slightlyOff } from "./spoil-wire.ts";
import { vocabulary } from "./vocabulary.ts";

/** Cases: caller, operation and request. Each depends only on its seed and on the names of the round. */

export const KINDS = ["valid", "nearly valid", "hostile"] as const;
export type Kind = (typeof KINDS)[number];

export interface Case {
  operation: Operation;
  caller: Caller;
  kind: Kind;
  sent: FuzzRequest;
}

/** Chooses operations with more input more often, unless they hash a password. */
function weightOf({ body, parameters, isSlow }: Operation): number {
  if (isSlow) return 2;
  if (body !== undefined) return 6;
  return parameters.length > 0 ? 4 : 1;
}

export function casesOf(document: ApiDocument, callers: readonly Caller[], prefix: string): fc.Arbitrary<Case> {
  const operations = document.operations.map((operation) => ({
    weight: weightOf(operation),
    arbitrary: fc.constant(operation),
  }));
  const generators = new Map(
    callers.map((caller) => [caller, new Generator(document, vocabulary(caller.names, prefix))]),
  );
  return fc
    .oneof(...operations)
    .chain((operation) => fc.tuple(fc.constant(operation), callerOf(callers, operation), fc.constantFrom(...KINDS)))
    .chain(([operation, caller, kind]) => {
      const generator = generators.get(caller);
      if (generator === undefined) throw new Error("A caller without a generator");
      return requestOf(document, generator, operation, kind).map((wire) => ({
        operation,
        caller,
        kind,
        sent: {
          method: wire.method,
          target: targetOf(operation, wire),
          headers: headersOf(caller, wire),
          body: wire.body,
        },
      }));
    });
}

const headersOf = ({ authorization }: Caller, { headers }: WireRequest): Record<string, string> => ({
  ...(authorization !== undefined && { Authorization: authorization }),
  ...headers,
});

/** Chooses mostly callers with permission, since the service rejects the others early. */
function callerOf(callers: readonly Caller[], operation: Operation): fc.Arbitrary<Caller> {
  const allowed = callers.filter(({ kind }) => operation.isPublic || operation.callers.includes(kind));
  const anyone = fc.constantFrom(...callers);
  return allowed.length === 0 ? anyone : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...allowed) }, anyone);
}

function requestOf(
  document: ApiDocument,
  generator: Generator,
  operation: Operation,
  kind: Kind,
): fc.Arbitrary<WireRequest> {
  const type = fc.constantFrom(...(operation.body?.types ?? [undefined]));
  const wire = (values: fc.Arbitrary<Values>): fc.Arbitrary<WireRequest> =>
    fc
      .tuple(values, type)
      .map(([values, type]) =>
        toWire(operation, values, type?.startsWith("multipart/") ? `${type}; boundary=${BOUNDARY}` : type),
      );
  const valid = valuesOf(generator, operation);
  switch (kind) {
    case "valid":
      return wire(valid);
    case "nearly valid":
      return fc.oneof(
        { weight: 2, arbitrary: wire(valid.chain((values) => nearlyValid(document, operation, values))) },
        fc.tuple(wire(valid), slightlyOff).map(([request, change]) => change(request)),
      );
    case "hostile":
      return fc.oneof(
        { weight: 2, arbitrary: wire(valid.chain((values) => hostile(document, operation, values))) },
        fc.tuple(wire(valid), hostileWire).map(([request, change]) => change(request)),
      );
  }
}

function valuesOf(generator: Generator, { parameters, body }: Operation): fc.Arbitrary<Values> {
  const inPlace = (place: "path" | "query") => {
    const those = parameters.filter((parameter) => parameter.in === place);
    const fields = Object.fromEntries(those.map(({ name, schema }) => [name, generator.valueOf(schema, name)]));
    return fc.record(fields, { requiredKeys: those.filter(({ required }) => required).map(({ name }) => name) });
  };
  return fc.record({
    path: inPlace("path"),
    query: inPlace("query"),
    ...(body !== undefined && { body: generator.valueOf(body.schema) }),
  }) as fc.Arbitrary<Values>;
}
