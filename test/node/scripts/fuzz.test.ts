import { Validator } from "@cfworker/json-schema";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { casesOf } from "../../../scripts/harness/fuzz/cases.ts";
import { ApiDocument } from "../../../scripts/harness/fuzz/document.ts";
import type { Caller } from "../../../scripts/harness/fuzz/fuzz-accounts.ts";
import { Generator } from "../../../scripts/harness/fuzz/generate.ts";
import { Judge } from "../../../scripts/harness/fuzz/judge.ts";
import type { JsonSchema, OpenApiDocument } from "../../../src/http/docs/openapi.ts";

const thing: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string", pattern: "^[a-z]{1,8}$" },
    size: { type: "number", exclusiveMinimum: 0, maximum: 1 },
    count: { type: "integer", minimum: 1, exclusiveMaximum: 3 },
    kinds: { type: "array", items: { enum: ["a", "b"] }, minItems: 1, maxItems: 10 },
    note: { anyOf: [{ type: "string", maxLength: 5 }, { type: "null" }] },
  },
  required: ["name", "size"],
  additionalProperties: {},
};
const responses = (schema: JsonSchema) => ({ description: "", content: { "application/json": { schema } } });
const error = responses({ type: "object", properties: { detail: { type: "string" } }, required: ["detail"] });

const document = new ApiDocument({
  paths: {
    "/things/{name}": {
      put: {
        operationId: "thingsPut",
        summary: "",
        description: "Callers: admin, app (itself).",
        tags: [],
        security: [{ bearer: [] }],
        parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }],
        requestBody: {
          required: true,
          content: { "application/json": { schema: { $ref: "#/components/schemas/Thing" } } },
        },
        responses: { 200: responses({ $ref: "#/components/schemas/Thing" }), 401: error },
      },
    },
  },
  components: { schemas: { Thing: thing }, securitySchemes: {} },
} as unknown as OpenApiDocument);

const names = { users: ["u"], agents: ["a"], apps: ["p"], jobs: ["j"], secret: "a secret" };
const admin: Caller = { name: "admin", kind: "admin", authorization: "Bearer x", isKnown: true, names };
const anonymous: Caller = { name: "anonymous", kind: "anonymous", authorization: undefined, isKnown: false, names };

describe("the fuzzer", () => {
  it("generates values that are valid for their schema", async () => {
    const validator = new Validator(thing as object, "2020-12");
    await fc.assert(
      fc.property(new Generator(document, {}).valueOf(thing), (value) => validator.validate(value as object).valid),
    );
  });

  it("generates values of a schema that contains itself", async () => {
    const tree: JsonSchema = {
      anyOf: [
        {
          type: "object",
          properties: { all: { type: "array", items: { $ref: "#/components/schemas/Tree" } } },
          required: ["all"],
        },
        { type: "number" },
      ],
    };
    const recursive = new ApiDocument({
      paths: {},
      components: { schemas: { Tree: tree }, securitySchemes: {} },
    } as unknown as OpenApiDocument);
    const values = fc.sample(new Generator(recursive, {}).valueOf({ $ref: "#/components/schemas/Tree" }), {
      numRuns: 200,
      seed: 1,
    });
    const validator = new Validator({ ...tree, components: { schemas: { Tree: tree } } } as object, "2020-12");
    for (const value of values) expect(validator.validate(value as object).valid).toBe(true);
    expect(JSON.stringify(values)).toMatch(/"all":\[\d/);
  });

  it("generates the same requests for the same seed, and others for another", () => {
    const cases = casesOf(document, [admin, anonymous], "fuzz");
    const sample = (seed: number) => JSON.stringify(fc.sample(cases, { numRuns: 50, seed }).map(({ sent }) => sent));
    expect(sample(1)).toBe(sample(1));
    expect(sample(1)).not.toBe(sample(2));
  });

  it.each([
    ["nothing wrong with a valid response", admin, "PUT", "/things/a", 200, '{"name":"a","size":1}', undefined],
    ["nothing wrong with 405 for an unknown operation", admin, "GET", "/things/a", 405, "{}", undefined],
    ["a 5xx", admin, "PUT", "/things/a", 500, '{"detail":"Internal Server Error"}', "returned 500"],
    ["an undocumented status", admin, "PUT", "/things/a", 418, "{}", "418, which is not documented"],
    ["another schema", admin, "PUT", "/things/a", 200, '{"name":"A","size":1}', "another schema"],
    ["invalid JSON", admin, "PUT", "/things/a", 200, '{"name":"a",', "returned 200 with invalid JSON"],
    ["a secret", admin, "PUT", "/things/a", 401, '{"detail":"not s3cr3t"}', "leaks internal data"],
    ["a stack trace", admin, "PUT", "/things/a", 401, '{"detail":"src/worker.ts:12"}', "leaks internal data"],
    ["an unknown caller", anonymous, "PUT", "/things/a", 200, '{"name":"a","size":1}', "accepted an unknown caller"],
    ["a success of an unknown operation", admin, "PUT", "/nothing", 200, "{}", "is no operation"],
  ])("finds %s", (_, caller, method, target, status, text, violation) => {
    const sent = { method, target, headers: {}, body: undefined };
    const verdict = new Judge(document).verdict(caller, sent, { status, type: "application/json", text });
    if (violation === undefined) expect(verdict).toEqual([]);
    else expect(verdict.join()).toContain(violation);
  });
});
