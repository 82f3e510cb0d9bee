import type { JsonSchema, OpenApiDocument, OpenApiOperation } from "../../../src/http/docs/openapi.ts";

/** The operations of `/openapi.json`, as the fuzzer needs them. */

export interface Operation extends Pick<OpenApiOperation, "responses"> {
  /** For example `GET /api/v1/users/me`. */
  id: string;
  method: string;
  template: string;
  parameters: NonNullable<OpenApiOperation["parameters"]>;
  body: { types: string[]; schema: JsonSchema } | undefined;
  isPublic: boolean;
  /** The kinds of caller that may use it, if only for themselves. */
  callers: string[];
  isWebSocket: boolean;
  /** Takes a password, whose hash is slow by design. */
  isSlow: boolean;
}

const SECRET_FIELD = /password|api_key/;

export class ApiDocument {
  readonly operations: readonly Operation[];
  readonly components: OpenApiDocument["components"];

  constructor({ paths, components }: OpenApiDocument) {
    this.components = components;
    this.operations = Object.entries(paths).flatMap(([template, operations]) =>
      Object.entries(operations).map(([method, operation]) => this.#read(template, method.toUpperCase(), operation)),
    );
  }

  #read(template: string, method: string, operation: OpenApiOperation): Operation {
    const { parameters = [], responses, security, description } = operation;
    const content = Object.entries(operation.requestBody?.content ?? {});
    const [, media] = content[0] ?? [];
    const body = media && { types: content.map(([type]) => type), schema: media.schema };
    const [, callers = ""] = /^Callers: (.*)\.$/m.exec(description) ?? [];
    const fields = Object.keys((body && this.resolve(body.schema).properties) ?? {});
    return {
      id: `${method} ${template}`,
      method,
      template,
      parameters,
      body,
      responses,
      isPublic: security.length === 0,
      callers: callers.split(", ").map((kind) => kind.split(" ")[0] ?? ""),
      isWebSocket: "101" in responses,
      isSlow: fields.some((name) => SECRET_FIELD.test(name)),
    };
  }

  /** Returns the schema that a reference names. */
  resolve(schema: JsonSchema): JsonSchema {
    const name = schema.$ref?.split("/").at(-1);
    return name === undefined ? schema : this.resolve(this.components.schemas[name] ?? {});
  }

  /** Returns the operation of a path. A template without parameters takes precedence. */
  operationAt(method: string, pathname: string): Operation | undefined {
    const matching = this.operations.filter((one) => one.method === method && matches(one.template, pathname));
    return matching.toSorted((a, b) => a.template.split("{").length - b.template.split("{").length)[0];
  }
}

const matches = (template: string, pathname: string): boolean =>
  new RegExp(`^${template.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`, "s").test(pathname);
