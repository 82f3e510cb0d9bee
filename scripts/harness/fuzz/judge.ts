import { Validator } from "@cfworker/json-schema";
import { parseJson } from "../client.ts";
import type { ApiDocument, Operation } from "./document.ts";
import type { FuzzRequest, FuzzResponse } from "./exchange.ts";
import type { Finding } from "./fuzz.ts";
import type { Caller } from "./fuzz-accounts.ts";
import { SECRET_MARK } from "./vocabulary.ts";

/** Checks a response against the document, and for data that must never be in one. */

/** Statuses of requests that match no operation. */
const NO_OPERATION = new Set([307, 404, 405]);

/** Hashes, tokens, stack traces, source files, and errors of the stores. */
const LEAK = /\$argon2|eyJ[\w-]{10,}\.[\w-]{10,}\.|\n\s+at \S+|\.[jt]s:\d+|SQLITE_|DB::Exception|node_modules/;

export class Judge {
  readonly #document: ApiDocument;
  readonly #validators = new Map<string, Validator>();

  constructor(document: ApiDocument) {
    this.#document = document;
  }

  /** Returns a text for each violation. */
  verdict(caller: Caller, { method, target }: FuzzRequest, response: FuzzResponse): string[] {
    const { status, text } = response;
    const violations: string[] = [];
    if (status >= 500) violations.push(`returned ${status}`);
    if (status >= 400 && (LEAK.test(text) || text.includes(SECRET_MARK))) violations.push("leaks internal data");
    const paths = possiblePaths(target);
    const operations = paths
      .map((pathname) => this.#document.operationAt(method === "HEAD" ? "GET" : method, pathname))
      .filter((operation) => operation !== undefined);
    if (operations.length < paths.length && NO_OPERATION.has(status)) return violations;
    if (operations.length === 0) return [...violations, `is no operation, but returned ${status}`];
    const isAllowed = caller.isKnown || operations.some(({ isPublic }) => isPublic);
    if (!isAllowed && status < 400) violations.push(`accepted an unknown caller with ${status}`);
    const [fewest = []] = operations
      .map((operation) => this.#undocumented(operation, response))
      .toSorted((a, b) => a.length - b.length);
    return [...violations, ...fewest];
  }

  #undocumented(operation: Operation, { status, type, text }: FuzzResponse): string[] {
    const documented = operation.responses[status];
    if (documented === undefined) return [`returned ${status}, which is not documented`];
    const content = Object.entries(documented.content ?? {});
    if (content.length === 0 || text === "") return [];
    const [mediaType, media] = content.find(([one]) => type.startsWith(one)) ?? [];
    if (mediaType === undefined)
      return [`returned ${type || "no type"} instead of ${content.map(([one]) => one).join()}`];
    if (mediaType !== "application/json") return [];
    const key = `${operation.id} ${status}`;
    const schema = { ...media?.schema, components: this.#document.components } as object;
    const validator = this.#validators.get(key) ?? new Validator(schema, "2020-12");
    this.#validators.set(key, validator);
    // The validator builds a URL of each key, and fails at lone surrogates, which JSON contains as escapes.
    const value = parseJson(text.replaceAll(/\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd"));
    if (value === undefined) return [`returned ${status} with invalid JSON`];
    const { errors } = validator.validate(value);
    return errors.length === 0 ? [] : [`returned ${status} with another schema: ${errors.at(-1)?.error}`];
  }
}

/** Returns the paths that a target may mean: unchanged, and with dots and backslashes resolved. */
function possiblePaths(target: string): string[] {
  const [unchanged = ""] = target.split(/[?#]/);
  const { pathname } = new URL(`http://service${target}`);
  const unescaped = (path: string) =>
    path.replaceAll(/%(?!2[5f])[2-7][0-9a-f]/gi, (escaped) => decodeURIComponent(escaped));
  return [...new Set([unchanged, pathname].map(unescaped))];
}

const MAX_LINES = 20;

/** Returns what the product must not print: secrets, and errors, since only bugs are logged as errors. */
export function logFindings(output: string): Finding[] {
  const lines = output
    .split("\n")
    .filter((line) => line.includes(SECRET_MARK) || /\$argon2/.test(line) || isError(line));
  const kinds = new Set(lines.map((line) => line.replace(/"(?:time|request_id)":"[^"]*",?/g, "").slice(0, 1_000)));
  return [...kinds].slice(0, MAX_LINES).map((line) => ({ what: `The product printed: ${line}` }));
}

/** workerd logs invalid WebSocket frames of a caller, which are no bug of the service. */
const isError = (line: string): boolean =>
  /"level":"error"|Uncaught/.test(line) && !line.includes("WebSocket protocol error");
