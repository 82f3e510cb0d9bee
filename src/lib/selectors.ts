/**
 * Labels and the selectors that choose agents by them. The syntax is that of Kubernetes, and a value may end with `*`:
 * `site=uk/bristol/*,technology in (LiFi,WiFi),!retired`.
 */

export type Labels = Readonly<Record<string, string>>;

/** A condition on one label. A negated condition also holds if the agent does not have the label, as in Kubernetes. */
export interface LabelCondition {
  key: string;
  /** The label has one of these values; a final `*` stands for any text. Undefined: the label has any value. */
  values?: readonly string[] | undefined;
  negated: boolean;
}

/** A reference to a group, which is a named selector. */
export interface GroupReference {
  group: string;
}

/** All conditions must hold. An empty selector selects every agent. */
export type Selector = readonly LabelCondition[];
/** A selector as its author wrote it. */
export type SelectorTerms = readonly (LabelCondition | GroupReference)[];

export const MAX_LABEL_LENGTH = 63;
export const MAX_SELECTOR_LENGTH = 2_000;
const MAX_TERMS = 32;
/** Each stands for as many terms as a group may have, and a query has to hold all of them. */
const MAX_GROUPS = 4;
const MAX_VALUES = 100;

/** A key starts and ends with a letter or digit. `*` and the characters of the syntax are in neither keys nor values. */
export const LABEL_KEY = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?$/;
export const LABEL_VALUE = /^[A-Za-z0-9._/@:+-]+$/;
export const GROUP_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;

/** Labels that the service sets. */
export const SERVICE_LABELS: readonly string[] = ["technology", "emulated", "owner"];

/** A selector does not follow the syntax. */
export class SelectorError extends Error {
  /** Index of the first wrong character. */
  readonly position: number;

  constructor(position: number, expected: string) {
    super(`${expected} expected at position ${position}`);
    this.position = position;
  }
}

const WORD = /[A-Za-z0-9._/@:+*-]+/y;
/** `accounts/group-store.ts` removes the same characters. */
const BLANKS = /[ \t\r\n]*/y;

/** Reads a selector from left to right. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get position(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    this.#match(BLANKS);
    return this.#at === this.#text.length;
  }

  /** Skips the token if it comes next, and returns whether it did. */
  skip(token: string): boolean {
    this.#match(BLANKS);
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  /** Returns the next word. Throws if it does not match the pattern or is too long. */
  word(pattern: RegExp, expected: string): string {
    this.#match(BLANKS);
    const start = this.#at;
    const word = this.#match(WORD);
    if (!pattern.test(word)) throw new SelectorError(start, expected);
    if (word.length > MAX_LABEL_LENGTH) {
      throw new SelectorError(start + MAX_LABEL_LENGTH, `${expected} of at most ${MAX_LABEL_LENGTH} characters`);
    }
    return word;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }
}

const VALUE_PATTERN = /^(?:[A-Za-z0-9._/@:+-]+\*?|\*)$/;

/** Parses a selector. Throws `SelectorError`. */
export function parseSelector(text: string): SelectorTerms {
  if (text.length > MAX_SELECTOR_LENGTH) {
    throw new SelectorError(MAX_SELECTOR_LENGTH, `A selector of at most ${MAX_SELECTOR_LENGTH} characters`);
  }
  const reader = new Reader(text);
  const terms: (LabelCondition | GroupReference)[] = [];
  if (reader.isAtEnd) return terms;
  do {
    if (terms.length === MAX_TERMS) throw new SelectorError(reader.position, `At most ${MAX_TERMS} terms`);
    const start = reader.position;
    terms.push(readTerm(reader));
    if (groupsIn(terms).length > MAX_GROUPS) throw new SelectorError(start, `At most ${MAX_GROUPS} groups`);
  } while (reader.skip(","));
  if (!reader.isAtEnd) throw new SelectorError(reader.position, "A comma or an operator");
  return terms;
}

function readTerm(reader: Reader): LabelCondition | GroupReference {
  if (reader.skip("@")) return { group: reader.word(GROUP_NAME, "The name of a group") };
  if (reader.skip("!")) return { key: reader.word(LABEL_KEY, "A label key"), negated: true };
  const key = reader.word(LABEL_KEY, "A label key, `!` or `@`");
  if (reader.skip("!=")) return { key, values: [readValue(reader)], negated: true };
  if (reader.skip("==") || reader.skip("=")) return { key, values: [readValue(reader)], negated: false };
  const negated = reader.skip("notin");
  return negated || reader.skip("in") ? { key, values: readValues(reader), negated } : { key, negated };
}

const readValue = (reader: Reader): string => reader.word(VALUE_PATTERN, "A label value");

function readValues(reader: Reader): string[] {
  if (!reader.skip("(")) throw new SelectorError(reader.position, "`(`");
  const values: string[] = [];
  do {
    if (values.length === MAX_VALUES) throw new SelectorError(reader.position, `At most ${MAX_VALUES} values`);
    values.push(readValue(reader));
  } while (reader.skip(","));
  if (!reader.skip(")")) throw new SelectorError(reader.position, "`,` or `)`");
  return values;
}

export const isGroup = (term: LabelCondition | GroupReference): term is GroupReference => "group" in term;

/** Returns the names of the groups that a selector refers to. */
export const groupsIn = (terms: SelectorTerms): string[] => terms.filter(isGroup).map(({ group }) => group);

/** Replaces references by the conditions of their groups. Returns undefined if a group is unknown. */
export function expandGroups(terms: SelectorTerms, groups: ReadonlyMap<string, Selector>): Selector | undefined {
  const conditions: LabelCondition[] = [];
  for (const term of terms) {
    const expanded = isGroup(term) ? groups.get(term.group) : [term];
    if (expanded === undefined) return undefined;
    conditions.push(...expanded);
  }
  return conditions;
}

/** Returns whether labels fulfil all conditions of a selector. */
export const matches = (selector: Selector, labels: Labels): boolean =>
  selector.every(({ key, values, negated }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    const holds = value !== undefined && (values === undefined || values.some((pattern) => fits(value, pattern)));
    return holds !== negated;
  });

const fits = (value: string, pattern: string): boolean =>
  pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : value === pattern;
