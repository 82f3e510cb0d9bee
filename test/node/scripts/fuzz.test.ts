import { Validator } from "@cfworker/json-schema";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Caller } from "../../../scripts/harness/fuzz/callers.ts";
import { casesOf } from "../../../scripts/harness/fuzz/cases.ts";
import { ApiDocument } from "../../../scripts/harness/fuzz/document.ts";
import { Generator } from "../../../scripts/harness/fuzz/generate.ts";
import { Judge } from "../../../scripts/harness/fuzz/judge.ts";
import type { JsonSchema, OpenApiDocument } from "../../../src/http/docs/openapi.ts";

/** The fuzzer itself: what it takes for valid is, and what is wrong it sees. */

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
const answers = (schema: JsonSchema) => ({ description: "", content: { "application/json": { schema } } });
const problem = answers({ type: "object", properties: { detail: { type: "string" } }, required: ["detail"] });

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
        responses: { 200: answers({ $ref: "#/components/schemas/Thing" }), 401: problem },
      },
    },
  },
  components: { schemas: { Thing: thing }, securitySchemes: {} },
} as unknown as OpenApiDocument);

const names = { users: ["u"], agents: ["a"], apps: ["p"], jobs: ["j"], secret: "a secret" };
const admin: Caller = { name: "admin", kind: "admin", authorization: "Bearer x", isKnown: true, names };
const nobody: Caller = { name: "nobody", kind: "nobody", authorization: undefined, isKnown: false, names };

describe("the fuzzer", () => {
  it("makes values that their schema calls valid", async () => {
    const validator = new Validator(thing as object, "2020-12");
    await fc.assert(
      fc.property(new Generator(document, {}).valueOf(thing), (value) => validator.validate(value as object).valid),
    );
  });

  it("makes the same requests of the same seed, and others of another", () => {
    const cases = casesOf(document, [admin, nobody], "fuzz");
    const sample = (seed: number) => JSON.stringify(fc.sample(cases, { numRuns: 50, seed }).map(({ sent }) => sent));
    expect(sample(1)).toBe(sample(1));
    expect(sample(1)).not.toBe(sample(2));
  });

  it.each([
    ["nothing, where all is well", admin, "PUT", "/things/a", 200, '{"name":"a","size":1}', undefined],
    ["nothing, where there is no such operation", admin, "GET", "/things/a", 405, "{}", undefined],
    ["a 5xx", admin, "PUT", "/things/a", 500, '{"detail":"Internal Server Error"}', "is answered with 500"],
    ["a status that is not documented", admin, "PUT", "/things/a", 418, "{}", "418, which is not documented"],
    ["another shape", admin, "PUT", "/things/a", 200, '{"name":"A","size":1}', "another shape"],
    ["what is no JSON", admin, "PUT", "/things/a", 200, '{"name":"a",', "is answered with 200 and what is no JSON"],
    ["a secret", admin, "PUT", "/things/a", 401, '{"detail":"not s3cr3t"}', "tells what it should not"],
    ["a stack", admin, "PUT", "/things/a", 401, '{"detail":"src/worker.ts:12"}', "tells what it should not"],
    ["a stranger who is let in", nobody, "PUT", "/things/a", 200, '{"name":"a","size":1}', "lets a stranger in"],
    ["an answer to what is no operation", admin, "PUT", "/nothing", 200, "{}", "is no operation"],
  ])("finds %s", (_, caller, method, target, status, text, fault) => {
    const sent = { method, target, headers: {}, body: undefined };
    const verdict = new Judge(document).verdict(caller, sent, { status, type: "application/json", text, tookMs: 1 });
    if (fault === undefined) expect(verdict).toEqual([]);
    else expect(verdict.join()).toContain(fault);
  });
});
