/** Parses the syntax of RE2 that label values need. Anything else is an error, not a text that never matches. */

/** An expression is not valid, not supported, or takes too long. */
export class RegexError extends Error {
  constructor(problem: string) {
    super(`The regular expression ${problem}`);
  }
}

interface CharNode {
  kind: "char";
  accepts: (char: string) => boolean;
  /** Steps that `accepts` takes. */
  steps: number;
  literal?: string;
}

export type Node =
  | CharNode
  | { kind: "assert"; holds: (before: string | undefined, after: string | undefined) => boolean }
  | { kind: "sequence"; nodes: Node[] }
  | { kind: "choice"; nodes: Node[] }
  | { kind: "repeat"; node: Node; min: number; max: number };

interface Flags {
  ignoresCase: boolean;
  /** Whether a dot matches a newline. Prometheus 3 sets it. */
  dotMatchesAll: boolean;
}

const MAX_DEPTH = 50;
/** As in RE2. */
const MAX_REPEAT = 1_000;

/** JavaScript needs some 50 µs to build a class, and several times as long for each Unicode category in it. */
const BUILD_STEPS = 1_000;
const UNICODE_CATEGORY = /^(?:[CLMNPSZ]|\{(?:C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?)\})/;

/** Returns the root, and the steps that it takes to build the classes, which happens when they are first used. */
export function parseRegex(pattern: string): { root: Node; buildSteps: number } {
  const parser = new Parser(Array.from(pattern));
  const root = parser.choice({ ignoresCase: false, dotMatchesAll: true }, 0);
  if (!parser.isAtEnd) throw new RegexError("has a `)` too many");
  return { root, buildSteps: parser.buildSteps };
}

/** Returns the texts that an expression lists, or `undefined` if it is not a list of texts. */
export function literalsOf(root: Node): string[] | undefined {
  const texts: string[] = [];
  return addLiterals(root, texts) ? texts : undefined;
}

/** Returns false if the node is not a list of texts. */
function addLiterals(node: Node, texts: string[]): boolean {
  if (node.kind === "choice") return node.nodes.every((option) => addLiterals(option, texts));
  let text = "";
  for (const part of node.kind === "sequence" ? node.nodes : [node]) {
    if (part.kind !== "char" || part.literal === undefined) return false;
    text += part.literal;
  }
  texts.push(text);
  return true;
}

class Parser {
  readonly #chars: readonly string[];
  /** Equal classes are built once. */
  readonly #classes = new Map<string, CharNode>();
  #at = 0;

  constructor(chars: readonly string[]) {
    this.#chars = chars;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#chars.length;
  }

  get buildSteps(): number {
    return [...this.#classes.values()].reduce((sum, { steps }) => sum + steps * BUILD_STEPS, 0);
  }

  choice(outer: Flags, depth: number): Node {
    if (depth > MAX_DEPTH) throw new RegexError("is nested too deeply");
    // `(?i)` changes the flags up to the end of the group.
    const flags = { ...outer };
    const options = [this.#sequence(flags, depth)];
    while (this.#skip("|")) options.push(this.#sequence(flags, depth));
    return options.length === 1 && options[0] !== undefined ? options[0] : { kind: "choice", nodes: options };
  }

  #sequence(flags: Flags, depth: number): Node {
    const nodes: Node[] = [];
    while (!this.isAtEnd && this.#peek() !== "|" && this.#peek() !== ")") {
      const node = this.#atom(flags, depth);
      if (node !== undefined) nodes.push(this.#repeated(node));
    }
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: "sequence", nodes };
  }

  /** Returns the next unit, or `undefined` if it only changes the flags. */
  #atom(flags: Flags, depth: number): Node | undefined {
    const char = this.#next();
    switch (char) {
      case "(":
        return this.#group(flags, depth);
      case "[":
        return this.#oneOf(this.#class(), flags);
      case "\\":
        return this.#escape(flags);
      case ".": {
        const { dotMatchesAll } = flags;
        return { kind: "char", accepts: (one) => dotMatchesAll || one !== "\n", steps: 1 };
      }
      case "^":
        return { kind: "assert", holds: (before) => before === undefined };
      case "$":
        return { kind: "assert", holds: (_, after) => after === undefined };
      case "*":
      case "+":
      case "?":
        throw new RegexError(`has a \`${char}\` that repeats nothing`);
      default:
        return this.#literal(char, flags);
    }
  }

  #group(flags: Flags, depth: number): Node | undefined {
    let inner = flags;
    if (this.#skip("?")) {
      const rest = this.#chars.slice(this.#at, this.#at + 64).join("");
      const [prefix = "", off = "", end] = /^(?:P?<\w+>|([a-zA-Z-]*)([:)]))/.exec(rest) ?? [];
      if (prefix === "") throw new RegexError("has a group of a kind that is not supported");
      this.#at += prefix.length;
      if (end !== undefined) inner = withFlags(flags, off);
      if (end === ")") {
        Object.assign(flags, inner);
        return undefined;
      }
    }
    const node = this.choice(inner, depth + 1);
    if (!this.#skip(")")) throw new RegexError("has a group without an end");
    return node;
  }

  #repeated(node: Node): Node {
    const bounds = this.#bounds();
    if (bounds === undefined) return node;
    // Laziness does not change whether the whole text matches.
    this.#skip("?");
    if (this.#bounds() !== undefined) throw new RegexError("repeats a repetition");
    return { kind: "repeat", node, ...bounds };
  }

  #bounds(): { min: number; max: number } | undefined {
    if (this.#skip("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#skip("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#skip("?")) return { min: 0, max: 1 };
    // Without numbers, a brace is a character like others.
    const found = /^\{(\d{1,9})(,(\d{1,9})?)?\}/.exec(this.#chars.slice(this.#at, this.#at + 24).join(""));
    if (found === null) return undefined;
    const [text, first, comma, second] = found;
    this.#at += text.length;
    const min = Number(first);
    const max = comma === undefined ? min : second === undefined ? Number.POSITIVE_INFINITY : Number(second);
    if (min > MAX_REPEAT || (max > MAX_REPEAT && max !== Number.POSITIVE_INFINITY) || max < min)
      throw new RegexError("has a repetition with wrong numbers");
    return { min, max };
  }

  #escape(flags: Flags): Node {
    const char = this.#next();
    if (char === "A") return { kind: "assert", holds: (before) => before === undefined };
    if (char === "z") return { kind: "assert", holds: (_, after) => after === undefined };
    if (char === "b") return { kind: "assert", holds: (before, after) => isWord(before) !== isWord(after) };
    if (char === "B") return { kind: "assert", holds: (before, after) => isWord(before) === isWord(after) };
    const escaped = this.#escaped(char);
    return escaped.isClass
      ? this.#oneOf(escaped.text, flags)
      : this.#literal(String.fromCodePoint(escaped.code), flags);
  }

  /** Returns the meaning of an escaped character: a class as JavaScript writes it, or one character. */
  #escaped(char: string): { isClass: true; text: string } | { isClass: false; code: number } {
    // JavaScript's \s has more characters than that of RE2.
    if (char === "s") return { isClass: true, text: "[\\t\\n\\f\\r ]" };
    if (char === "S") return { isClass: true, text: "[^\\t\\n\\f\\r ]" };
    if (/[dDwW]/.test(char)) return { isClass: true, text: `\\${char}` };
    if (char === "p" || char === "P") {
      const [category = ""] = UNICODE_CATEGORY.exec(this.#chars.slice(this.#at, this.#at + 4).join("")) ?? [];
      if (category === "") throw new RegexError("has a class that is not supported");
      this.#at += category.length;
      return { isClass: true, text: `\\${char}{${category.replace(/[{}]/g, "")}}` };
    }
    if (char === "x") {
      const [digits = ""] =
        /^(?:[0-9a-f]{2}|\{[0-9a-f]{1,6}\})/i.exec(this.#chars.slice(this.#at, this.#at + 8).join("")) ?? [];
      this.#at += digits.length;
      const code = Number.parseInt(digits.replace(/[{}]/g, ""), 16);
      if (!(code <= 0x10ffff)) throw new RegexError("has an invalid escape");
      return { isClass: false, code };
    }
    const control = { t: 9, n: 10, v: 11, f: 12, r: 13, a: 7 }[char];
    if (control !== undefined) return { isClass: false, code: control };
    if (/[0-9A-Za-z]/.test(char)) throw new RegexError(`has an escape that is not supported: \\${char}`);
    return { isClass: false, code: char.codePointAt(0) ?? 0 };
  }

  /** Reads a class in brackets. Returns it as JavaScript writes it. */
  #class(): string {
    const start = this.#skip("^") ? "[^" : "[";
    const items = new Set<string>();
    let isFirst = true;
    for (; isFirst || this.#peek() !== "]"; isFirst = false) {
      if (this.#peek() === "[" && this.#peek(1) === ":") throw new RegexError("has a class that is not supported");
      const from = this.#classItem();
      const isRange = this.#peek() === "-" && this.#peek(1) !== "]" && this.#peek(1) !== undefined;
      if (!isRange || from.isClass) {
        items.add(from.isClass ? from.text.replace(/^\[\^?|\]$/g, "") : toEscape(from.code));
        if (from.isClass && from.text.startsWith("[^"))
          throw new RegexError("has \\S in a class, which is not supported");
        continue;
      }
      this.#at++;
      const to = this.#classItem();
      if (to.isClass || to.code < from.code) throw new RegexError("has a wrong range of characters");
      items.add(`${toEscape(from.code)}-${toEscape(to.code)}`);
    }
    this.#at++;
    return `${start}${[...items].join("")}]`;
  }

  #classItem(): { isClass: true; text: string } | { isClass: false; code: number } {
    const char = this.#next();
    return char === "\\" ? this.#escaped(this.#next()) : { isClass: false, code: char.codePointAt(0) ?? 0 };
  }

  /** Tests one character at a time, which JavaScript does in a time that depends only on the class. */
  #oneOf(text: string, { ignoresCase }: Flags): Node {
    const flags = ignoresCase ? "iu" : "u";
    const key = `${flags} ${text}`;
    let node = this.#classes.get(key);
    if (node === undefined) {
      let pattern: RegExp | undefined;
      const accepts = (char: string): boolean => {
        pattern ??= new RegExp(`^${text}$`, flags);
        return pattern.test(char);
      };
      // Of the parts of a class, only a category has hundreds of ranges.
      node = { kind: "char", accepts, steps: 1 + (text.match(/\\p/gi)?.length ?? 0) };
      this.#classes.set(key, node);
    }
    return node;
  }

  #literal(char: string, flags: Flags): Node {
    if (flags.ignoresCase) return this.#oneOf(toEscape(char.codePointAt(0) ?? 0), flags);
    return { kind: "char", accepts: (one) => one === char, steps: 1, literal: char };
  }

  #peek(offset = 0): string | undefined {
    return this.#chars[this.#at + offset];
  }

  #next(): string {
    const char = this.#chars[this.#at++];
    if (char === undefined) throw new RegexError("ends too early");
    return char;
  }

  #skip(char: string): boolean {
    if (this.#peek() !== char) return false;
    this.#at++;
    return true;
  }
}

const isWord = (char: string | undefined): boolean => char !== undefined && /^\w$/.test(char);
const toEscape = (code: number): string => `\\u{${code.toString(16)}}`;

function withFlags(flags: Flags, letters: string): Flags {
  const changed = { ...flags };
  let isOn = true;
  for (const letter of letters) {
    if (letter === "-" && isOn) isOn = false;
    else if (letter === "i") changed.ignoresCase = isOn;
    else if (letter === "s") changed.dotMatchesAll = isOn;
    else throw new RegexError(`has a flag that is not supported: ${letter}`);
  }
  return changed;
}
