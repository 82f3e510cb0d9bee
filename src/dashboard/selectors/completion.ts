import type { LabelSummary } from "../../schemas/labels.ts";
import { countOf } from "../lib/format.ts";

/** Completion of a selector while it is typed. */

/** What may be in a selector: the labels of the access points that the user sees, and the groups. */
export interface Vocabulary {
  labels: readonly LabelSummary[];
  groups: readonly { name: string; description: string }[];
}

export interface Option {
  /** Replaces the text from `from` to `to`. */
  insert: string;
  detail: string;
}

export interface Completion {
  from: number;
  to: number;
  options: readonly Option[];
}

const MAX_OPTIONS = 10;

const OPERATORS: readonly Option[] = [
  { insert: "=", detail: "has the value" },
  { insert: "!=", detail: "has another value, or none" },
  { insert: "in (", detail: "has one of the values" },
  { insert: "notin (", detail: "has none of the values" },
];

const KEY = "([A-Za-z0-9][A-Za-z0-9._/-]*)";
const AFTER_EQUALS = new RegExp(`^${KEY}\\s*(?:=|==|!=)$`);
const IN_LIST = new RegExp(`^${KEY}\\s*(?:in|notin)\\s*\\(([^)]*)$`);
const AFTER_KEY = new RegExp(`^${KEY}$`);
const AFTER_IN = new RegExp(`^${KEY}\\s+(?:in|notin)$`);

const WORD_BEFORE = /[A-Za-z0-9._/@:+*-]*$/;
const WORD_AFTER = /^[A-Za-z0-9._/@:+*-]*/;

/** Returns what may stand at the caret, best first. */
export function completionAt(text: string, caret: number, vocabulary: Vocabulary): Completion {
  const before = text.slice(0, caret);
  const word = WORD_BEFORE.exec(before)?.[0] ?? "";
  const from = caret - word.length;
  const to = caret + (WORD_AFTER.exec(text.slice(caret))?.[0].length ?? 0);
  const start = termStart(before);
  // The part of the term before the word at the caret.
  const head = before.slice(start, from).trim();
  return { from, to, options: optionsAfter(head, word, vocabulary).slice(0, MAX_OPTIONS) };
}

function optionsAfter(head: string, word: string, { labels, groups }: Vocabulary): Option[] {
  const valuesOf = (key: string | undefined, chosen: readonly string[] = []) =>
    matching(
      valueOptions(labels.find((label) => label.key === key)?.values ?? []).filter(
        ({ insert }) => !chosen.includes(insert),
      ),
      word,
    );
  const keyOptions = labels.map(({ key, agents }) => ({ insert: key, detail: countText(agents) }));
  if (head === "") {
    const groupOptions = groups.map(({ name, description }) => ({
      insert: `@${name}`,
      detail: description || "group",
    }));
    if (labels.some(({ key }) => key === word)) return operatorsAfter(word);
    return word.startsWith("@") ? matching(groupOptions, word) : matching([...keyOptions, ...groupOptions], word);
  }
  if (head === "!") return matching(keyOptions, word);
  const equals = AFTER_EQUALS.exec(head);
  if (equals !== null) return valuesOf(equals[1]);
  const list = IN_LIST.exec(head);
  if (list !== null) {
    const inner = (list[2] ?? "").trim();
    if (inner !== "" && !inner.endsWith(",")) return word === "" ? LIST_ENDS : [];
    return valuesOf(
      list[1],
      inner.split(",").map((value) => value.trim()),
    );
  }
  if (AFTER_IN.test(head)) return word === "" ? [{ insert: "(", detail: "the values" }] : [];
  if (AFTER_KEY.test(head)) return OPERATORS.filter(({ insert }) => insert.startsWith(word));
  return [];
}

const LIST_ENDS: Option[] = [
  { insert: ", ", detail: "another value" },
  { insert: ")", detail: "end of the values" },
];

const operatorsAfter = (key: string): Option[] =>
  OPERATORS.map(({ insert, detail }) => ({ insert: `${key}${/^\w/.test(insert) ? " " : ""}${insert}`, detail }));

/** Returns the values, and a pattern for each path above them: `uk/*` for `uk/bristol`. The most frequent are first. */
function valueOptions(values: LabelSummary["values"]): Option[] {
  const counts = new Map(values.map(({ value, agents }) => [value, agents]));
  for (const { value, agents } of values) {
    for (let slash = value.indexOf("/"); slash > 0; slash = value.indexOf("/", slash + 1)) {
      const pattern = `${value.slice(0, slash)}/*`;
      counts.set(pattern, (counts.get(pattern) ?? 0) + agents);
    }
  }
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .map(([insert, agents]) => ({ insert, detail: countText(agents) }));
}

/** Returns the options that contain the word, those that start with it first. Omits the word itself. */
function matching(options: readonly Option[], word: string): Option[] {
  const searched = word.toLowerCase();
  const found = options.filter(({ insert }) => insert !== word && insert.toLowerCase().includes(searched));
  const starts = ({ insert }: Option): boolean => insert.toLowerCase().startsWith(searched);
  return [...found.filter(starts), ...found.filter((option) => !starts(option))];
}

const countText = (agents: number): string => countOf(agents, "access point");

/** Returns where the last term starts: after the last comma that is not inside brackets. */
function termStart(text: string): number {
  const open = text.lastIndexOf("(");
  const isInside = open > text.lastIndexOf(")");
  return text.lastIndexOf(",", isInside ? open : undefined) + 1;
}
