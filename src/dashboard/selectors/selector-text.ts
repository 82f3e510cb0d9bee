import {
  isGroup,
  MAX_LABEL_LENGTH,
  parseSelector,
  SelectorError,
  type SelectorTerms,
} from "../../schemas/selector-syntax.ts";

/** Selectors as texts that people write and the page changes. */

export interface SyntaxProblem {
  message: string;
  /** Index of the first wrong character. */
  position: number;
}

/** Returns the first error in a selector, or undefined. */
export function problemIn(text: string): SyntaxProblem | undefined {
  const parsed = parse(text);
  return parsed instanceof SelectorError ? { message: parsed.message, position: parsed.position } : undefined;
}

function parse(text: string): SelectorTerms | SelectorError {
  try {
    return parseSelector(text);
  } catch (error) {
    if (error instanceof SelectorError) return error;
    throw error;
  }
}

/** Returns a selector without its conditions on one label. An invalid selector stays as it is. */
export function withoutKey(text: string, key: string): string {
  const terms = parse(text);
  if (terms instanceof SelectorError || terms.every((term) => isGroup(term) || term.key !== key)) return text;
  return textOf(terms.filter((term) => isGroup(term) || term.key !== key));
}

/** Adds a term to a selector. */
export const withTerm = (text: string, term: string): string => (text.trim() === "" ? term : `${text.trim()},${term}`);

function textOf(terms: SelectorTerms): string {
  return terms
    .map((term) => {
      if (isGroup(term)) return `@${term.group}`;
      const { key, values, negated } = term;
      if (values === undefined) return negated ? `!${key}` : key;
      if (values.length === 1) return `${key}${negated ? "!=" : "="}${values[0]}`;
      return `${key} ${negated ? "notin" : "in"} (${values.join(",")})`;
    })
    .join(",");
}

/** Returns the condition for a site and all sites below it. */
export function siteTerm(path: string): string {
  // The path of a site above one that starts with a slash.
  if (path === "") return "site=/*";
  // No site can be below one with such a long path.
  const below = `${path}/*`;
  return below.length > MAX_LABEL_LENGTH ? `site=${path}` : `site in (${path},${below})`;
}

/** Returns the site that a selector chooses with `siteTerm`. Null: the access points without a site. Undefined: another selector. */
export function siteIn(text: string): string | null | undefined {
  const terms = parse(text);
  if (terms instanceof SelectorError) return undefined;
  const ofSite = terms.flatMap((term) => (isGroup(term) || term.key !== "site" ? [] : [term]));
  const [term] = ofSite;
  if (term === undefined || ofSite.length > 1) return undefined;
  const { values, negated } = term;
  if (values === undefined) return negated ? null : undefined;
  const [path = "", below = `${path}/*`] = values;
  return !negated && values.length <= 2 && !path.includes("*") && below === `${path}/*` ? path : undefined;
}
