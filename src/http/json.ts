import { asJsonText, type JsonText } from "../lib/encoding.ts";
import { Invalid, Malformed } from "../lib/errors.ts";
import { MAX_JSON_DEPTH } from "../schemas/primitives.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Parses a JSON body: strict UTF-8, limited depth, and without keys that could change a prototype. Returns the value together with the
 * caller's text. The text may hold `__proto__` keys that the value does not. They are harmless: the service passes the text through and
 * never merges it into an object.
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
  sanitize(value, 1);
  return { value, text: asJsonText(text) };
}

/**
 * Rejects deep nesting and deletes `__proto__` keys. Such a key is harmless as an own property, but not once code assigns it to another
 * object. It is an extra field, and extra fields are ignored.
 */
function sanitize(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_JSON_DEPTH) {
    const msg = `Value error, JSON must not be nested deeper than ${MAX_JSON_DEPTH} levels`;
    throw new Invalid([{ loc: ["body"], msg, type: "value_error" }]);
  }
  if (Object.hasOwn(value, "__proto__")) Reflect.deleteProperty(value, "__proto__");
  for (const child of Object.values(value)) sanitize(child, depth + 1);
}

const SPACE = /[ \t\n\r]*/y;
const LITERAL = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids these characters inside a string.
const PLAIN_CHARACTERS = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Returns the end of the match of `pattern` at `start`, or -1 if it does not match. */
function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** Returns the end of the string literal that opens at `start`, or -1 if it is invalid. */
function endOfString(text: string, start: number): number {
  for (let next = start + 1; ; ) {
    next = endOf(PLAIN_CHARACTERS, text, next);
    if (text[next] === '"') return next + 1;
    next = endOf(ESCAPE, text, next);
    if (next === -1) return -1;
  }
}

/** Returns the position of the first syntax error. V8 reports it for some errors only, so this reads the tokens again. */
export function errorPosition(text: string): number {
  const open: ("{" | "[")[] = [];
  let expected: "value" | "value or ]" | "key" | "key or }" | "colon" | "comma" | "end" = "value";
  for (let position = 0; ; ) {
    position = endOf(SPACE, text, position);
    const character = text[position];
    const expectsValue = expected === "value" || expected === "value or ]";
    const expectsKey = expected === "key" || expected === "key or }";
    const container = open.at(-1);
    let next = position + 1;
    if (expected === "comma" && character === ",") expected = container === "{" ? "key" : "value";
    else if (expected === "colon" && character === ":") expected = "value";
    else if (expectsValue && (character === "{" || character === "[")) {
      open.push(character);
      expected = character === "{" ? "key or }" : "value or ]";
    } else if (
      (character === "}" && container === "{" && (expected === "comma" || expected === "key or }")) ||
      (character === "]" && container === "[" && (expected === "comma" || expected === "value or ]"))
    ) {
      open.pop();
      expected = open.length === 0 ? "end" : "comma";
    } else if (expectsValue || (expectsKey && character === '"')) {
      next = character === '"' ? endOfString(text, position) : endOf(LITERAL, text, position);
      if (next === -1) return position;
      if (expectsKey) expected = "colon";
      else expected = open.length === 0 ? "end" : "comma";
    } else return position;
    position = next;
  }
}
