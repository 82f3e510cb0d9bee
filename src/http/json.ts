import { Invalid, Malformed } from "../lib/errors.ts";
import { asJsonText, type JsonText } from "../lib/json-text.ts";
import { MAX_JSON_DEPTH } from "../schemas/primitives.ts";

/** JSON from outside: decoded strictly, bounded in depth, and free of keys that could reach a prototype. */

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Returns the parsed value together with the text as the caller sent it. The text may hold `__proto__` keys that the value does not.
 * They are harmless: the service passes the text through and never merges it into an object.
 */
export function parseJson(bytes: ArrayBuffer): { value: unknown; text: JsonText } {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Malformed("There was an error parsing the body");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Invalid([{ loc: ["body", errorPosition(text)], msg: "JSON decode error", type: "json_invalid" }]);
  }
  clean(value, 1);
  return { value, text: asJsonText(text) };
}

/** `__proto__` as an own key is harmless until someone assigns it along; it is an extra field, and those are ignored. */
function clean(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_JSON_DEPTH) {
    const msg = `Value error, JSON must not be nested deeper than ${MAX_JSON_DEPTH} levels`;
    throw new Invalid([{ loc: ["body"], msg, type: "value_error" }]);
  }
  if (Object.hasOwn(value, "__proto__")) Reflect.deleteProperty(value, "__proto__");
  for (const child of Object.values(value)) clean(child, depth + 1);
}

const SPACE = /[ \t\n\r]*/y;
const LITERAL = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON forbids inside a string.
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** The end of `pattern` at `at`, or -1 where it does not match. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** The end of the string that opens at `at`, or -1 where it is broken. */
function endOfString(text: string, at: number): number {
  for (let next = at + 1; ; ) {
    next = endOf(PLAIN_CHARACTERS, text, next);
    if (text[next] === '"') return next + 1;
    next = endOf(ESCAPE, text, next);
    if (next === -1) return -1;
  }
}

/** Where a text stops being JSON. V8 tells it for some errors only, so the text is read once more, token by token. */
export function errorPosition(text: string): number {
  const open: ("{" | "[")[] = [];
  let want: "value" | "value or ]" | "key" | "key or }" | "colon" | "comma" | "end" = "value";
  for (let at = 0; ; ) {
    at = endOf(SPACE, text, at);
    const mark = text[at];
    const wantsValue = want === "value" || want === "value or ]";
    const wantsKey = want === "key" || want === "key or }";
    const container = open.at(-1);
    let next = at + 1;
    if (want === "comma" && mark === ",") want = container === "{" ? "key" : "value";
    else if (want === "colon" && mark === ":") want = "value";
    else if (wantsValue && (mark === "{" || mark === "[")) {
      open.push(mark);
      want = mark === "{" ? "key or }" : "value or ]";
    } else if (
      (mark === "}" && container === "{" && (want === "comma" || want === "key or }")) ||
      (mark === "]" && container === "[" && (want === "comma" || want === "value or ]"))
    ) {
      open.pop();
      want = open.length === 0 ? "end" : "comma";
    } else if (wantsValue || (wantsKey && mark === '"')) {
      next = mark === '"' ? endOfString(text, at) : endOf(LITERAL, text, at);
      if (next === -1) return at;
      if (wantsKey) want = "colon";
      else want = open.length === 0 ? "end" : "comma";
    } else return at;
    at = next;
  }
}
