import type { JsonSchema, OpenApiDocument, OpenApiOperation } from "../../../src/http/docs/openapi.ts";

/** What `/openapi.json` promises, as the fuzzer asks for it. */

export interface Operation extends Pick<OpenApiOperation, "responses"> {
  /** As in `GET /api/v1/users/me`. */
  id: string;
  method: string;
  template: string;
  parameters: NonNullable<OpenApiOperation["parameters"]>;
  body: { types: string[]; schema: JsonSchema } | undefined;
  isPublic: boolean;
  /** The kinds of caller that may do it, if only to themselves. */
  callers: string[];
  isWebSocket: boolean;
  /** Takes a password, which it may have to hash: that is slow by design. */
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
    const content = Object.entries(operation.requestBody?.content ?? {});
    const [, media] = content[0] ?? [];
    const body = media && { types: content.map(([type]) => type), schema: media.schema };
    return {
      id: `${method} ${template}`,
      method,
      template,
      parameters: operation.parameters ?? [],
      body,
      responses: operation.responses,
      isPublic: operation.security.length === 0,
      callers: (/^Callers: (.*)\.$/m.exec(operation.description)?.[1] ?? "")
        .split(", ")
        .map((kind) => kind.split(" ")[0] ?? ""),
      isWebSocket: "101" in operation.responses,
      isSlow: Object.keys((body && this.resolve(body.schema).properties) ?? {}).some((name) => SECRET_FIELD.test(name)),
    };
  }

  /** The schema itself, where this one only says its name. */
  resolve(schema: JsonSchema): JsonSchema {
    const name = schema.$ref?.split("/").at(-1);
    return name === undefined ? schema : this.resolve(this.components.schemas[name] ?? {});
  }

  /** Whose answer it is that comes to a path. A template that says it in full goes before one with a parameter. */
  operationAt(method: string, pathname: string): Operation | undefined {
    return this.operations
      .filter((operation) => operation.method === method && matches(operation.template, pathname))
      .toSorted((a, b) => a.template.split("{").length - b.template.split("{").length)[0];
  }
}

const matches = (template: string, pathname: string): boolean =>
  new RegExp(`^${template.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`, "s").test(pathname);
