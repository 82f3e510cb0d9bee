import * as fc from "fast-check";
import { binaryBodies } from "./binary.ts";
import type { ApiDocument, Operation } from "./document.ts";
import type { FuzzRequest } from "./exchange.ts";
import type { Caller } from "./fuzz-accounts.ts";
import { Generator } from "./generate.ts";
import { targetOf, toWire, type Values, type WireRequest } from "./request.ts";
import { hostile, nearlyValid, sitesOf } from "./spoil.ts";
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
  const operations = document.operations.map((one) => ({ weight: weightOf(one), arbitrary: fc.constant(one) }));
  const generators = new Map(
    callers.map((caller) => [caller, new Generator(document, vocabulary(caller.names, prefix))]),
  );
  return fc
    .oneof(...operations)
    .chain((operation) => fc.tuple(fc.constant(operation), callerOf(callers, operation), fc.constantFrom(...KINDS)))
    .chain(([operation, caller, kind]) => {
      const valid = valuesOf(generators.get(caller) as Generator, operation);
      return requestOf(document, operation, valid, kind).map(({ method, path, query, headers, body }) => {
        const authorization = caller.authorization !== undefined && { Authorization: caller.authorization };
        const target = targetOf(operation, path, query);
        return { operation, caller, kind, sent: { method, target, headers: { ...authorization, ...headers }, body } };
      });
    });
}

/** Chooses mostly callers with permission, since the service rejects the others early. */
function callerOf(callers: readonly Caller[], operation: Operation): fc.Arbitrary<Caller> {
  const allowed = callers.filter(({ kind }) => operation.isPublic || operation.callers.includes(kind));
  const anyone = fc.constantFrom(...callers);
  return allowed.length === 0 ? anyone : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...allowed) }, anyone);
}

/** How the values and the text of a valid request are changed. */
const CHANGES = { "nearly valid": [nearlyValid, slightlyOff], hostile: [hostile, hostileWire] } as const;

function requestOf(document: ApiDocument, operation: Operation, valid: fc.Arbitrary<Values>, kind: Kind) {
  const types = fc.constantFrom(...(operation.body?.types ?? [undefined]));
  const wire = (values: fc.Arbitrary<Values>): fc.Arbitrary<WireRequest> =>
    fc.tuple(values, types).map(([values, type]) => toWire(operation, values, type));
  const binary = binaryBodies(operation);
  if (binary !== undefined && kind !== "nearly valid") {
    return fc
      .tuple(wire(valid), binary)
      .map(([request, { headers, body }]) => ({ ...request, headers: { ...request.headers, ...headers }, body }));
  }
  if (kind === "valid") return wire(valid);
  const [ofValues, ofText] = CHANGES[kind];
  const changed = valid.chain((values) => {
    const sites = sitesOf(document, operation, values);
    return sites.length === 0 ? fc.constant(values) : ofValues(fc.constantFrom(...sites), values);
  });
  return fc.oneof(
    { weight: 2, arbitrary: wire(changed) },
    fc.tuple(wire(valid), ofText).map(([request, change]) => ({ ...request, ...change(request) })),
  );
}

function valuesOf(generator: Generator, { parameters, body }: Operation): fc.Arbitrary<Values> {
  const inPlace = (place: "path" | "query") => {
    const those = parameters.filter((parameter) => parameter.in === place);
    const fields = Object.fromEntries(those.map(({ name, schema }) => [name, generator.valueOf(schema, name)]));
    return fc.record(fields, { requiredKeys: those.filter(({ required }) => required).map(({ name }) => name) });
  };
  const places = { path: inPlace("path"), query: inPlace("query") };
  return fc.record<Values>(body === undefined ? places : { ...places, body: generator.valueOf(body.schema) });
}
