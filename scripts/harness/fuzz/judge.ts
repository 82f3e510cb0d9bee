import { Validator } from "@cfworker/json-schema";
import type { Caller } from "./callers.ts";
import type { ApiDocument, Operation } from "./document.ts";
import type { Answer, Sent } from "./exchange.ts";
import { SECRET_MARK } from "./vocabulary.ts";

/** Holds an answer against the document, and against what must never be in one. */

/** Answers to what is no operation at all. */
const ELSEWHERE = new Set([307, 404, 405]);

/** Hashes, tokens, stacks, names of source files, and what the stores say when they are cross. */
const TELLTALE = /\$argon2|eyJ[\w-]{10,}\.[\w-]{10,}\.|\n\s+at \S+|\.[jt]s:\d+|SQLITE_|DB::Exception|node_modules/;

export class Judge {
  readonly #document: ApiDocument;
  readonly #validators = new Map<string, Validator>();

  constructor(document: ApiDocument) {
    this.#document = document;
  }

  /** What is wrong with an answer; nothing where all is well. */
  verdict(caller: Caller, { method, target }: Sent, answer: Answer): string[] {
    const { status, text } = answer;
    const faults: string[] = [];
    if (status >= 500) faults.push(`is answered with ${status}`);
    if (status >= 400 && (TELLTALE.test(text) || text.includes(SECRET_MARK))) faults.push("tells what it should not");
    const readings = readingsOf(target);
    const operations = readings
      .map((pathname) => this.#document.operationAt(method === "HEAD" ? "GET" : method, pathname))
      .filter((operation) => operation !== undefined);
    if (operations.length < readings.length && ELSEWHERE.has(status)) return faults;
    if (operations.length === 0) return [...faults, `is no operation, and is answered with ${status}`];
    const isOpen = caller.isKnown || operations.some(({ isPublic }) => isPublic);
    if (!isOpen && status < 400) faults.push(`lets a stranger in with ${status}`);
    const [fewest = []] = operations
      .map((operation) => this.#undocumented(operation, answer))
      .toSorted((a, b) => a.length - b.length);
    return [...faults, ...fewest];
  }

  #undocumented(operation: Operation, { status, type, text }: Answer): string[] {
    const documented = operation.responses[status];
    if (documented === undefined) return [`is answered with ${status}, which is not documented`];
    const [[mediaType, media] = []] = Object.entries(documented.content ?? {});
    if (mediaType === undefined || text === "") return [];
    if (!type.startsWith(mediaType)) return [`is answered in ${type || "no type"}, not in ${mediaType}`];
    if (mediaType !== "application/json") return [];
    const key = `${operation.id} ${status}`;
    const validator =
      this.#validators.get(key) ??
      new Validator({ ...media?.schema, components: this.#document.components } as object, "2020-12");
    this.#validators.set(key, validator);
    let value: unknown;
    try {
      // The validator makes an address of each key, and fails at lone surrogates, which JSON says as escapes.
      value = JSON.parse(text.replaceAll(/\\ud[89a-f][0-9a-f]{2}/gi, "\\ufffd"));
    } catch {
      return [`is answered with ${status} and what is no JSON`];
    }
    const { errors } = validator.validate(value);
    return errors.length === 0 ? [] : [`is answered with ${status} in another shape: ${errors.at(-1)?.error}`];
  }
}

/** The paths that a target may be taken for: as it stands, and with its dots and backslashes resolved. */
function readingsOf(target: string): string[] {
  const [asItStands = ""] = target.split(/[?#]/);
  const { pathname } = new URL(`http://service${target}`);
  // A name may be said in escapes as well.
  const plain = (path: string) =>
    path.replaceAll(/%(?!2[5f])[2-7][0-9a-f]/gi, (escaped) => decodeURIComponent(escaped));
  return [...new Set([asItStands, pathname].map(plain))];
}
