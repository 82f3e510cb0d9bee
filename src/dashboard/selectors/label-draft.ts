import {
  LABEL_KEY,
  LABEL_VALUE,
  type Labels,
  MAX_LABEL_LENGTH,
  SERVICE_LABELS,
} from "../../schemas/selector-syntax.ts";

/** Labels in a form. */
export interface LabelRow {
  /** Identifies the row while its key is typed. */
  id: number;
  key: string;
  value: string;
}

let lastId = 0;
export const newRow = (key = "", value = ""): LabelRow => ({ id: ++lastId, key, value });

export const isServiceLabel = (key: string): boolean => SERVICE_LABELS.includes(key);

/** Returns the labels that users may change, as rows. */
export const rowsOf = (labels: Labels): LabelRow[] =>
  Object.entries(labels)
    .filter(([key]) => !isServiceLabel(key))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, value]) => newRow(key, value));

const isEmpty = ({ key, value }: LabelRow): boolean => key.trim() === "" && value.trim() === "";

/** Returns the labels of rows. Ignores empty rows. */
export const labelsIn = (rows: readonly LabelRow[]): Record<string, string> =>
  Object.fromEntries(rows.filter((row) => !isEmpty(row)).map(({ key, value }) => [key.trim(), value.trim()]));

/** Returns what must change so that an agent has the labels of the rows and no others. Null removes a label. */
export function changesBetween(before: Labels, rows: readonly LabelRow[]): Record<string, string | null> {
  const after = labelsIn(rows);
  const removed = Object.keys(before).filter((key) => !isServiceLabel(key) && !Object.hasOwn(after, key));
  const set = Object.entries(after).filter(([key, value]) => !Object.hasOwn(before, key) || before[key] !== value);
  return Object.fromEntries([...removed.map((key) => [key, null] as const), ...set]);
}

export interface RowErrors {
  key?: string;
  value?: string;
}

/** Returns what is wrong with each row, by its id. An empty row is not an error. */
export function errorsIn(rows: readonly LabelRow[]): ReadonlyMap<number, RowErrors> {
  const errors = new Map<number, RowErrors>();
  const used = new Set<string>();
  for (const row of rows) {
    if (isEmpty(row)) continue;
    const key = row.key.trim();
    const problem = keyProblem(key) ?? (used.has(key) ? "This key is there twice." : undefined);
    const value = valueProblem(row.value.trim());
    used.add(key);
    if (problem !== undefined || value !== undefined)
      errors.set(row.id, { ...(problem !== undefined && { key: problem }), ...(value !== undefined && { value }) });
  }
  return errors;
}

/** Returns why a key is not valid, or undefined. */
export function keyProblem(key: string): string | undefined {
  if (key === "") return "Enter a key.";
  if (key.length > MAX_LABEL_LENGTH) return TOO_LONG;
  if (isServiceLabel(key)) return "Only the service sets this label.";
  return LABEL_KEY.test(key) ? undefined : "Use letters, digits and . _ / - with a letter or digit at both ends.";
}

function valueProblem(value: string): string | undefined {
  if (value === "") return "Enter a value.";
  if (value.length > MAX_LABEL_LENGTH) return TOO_LONG;
  return LABEL_VALUE.test(value) ? undefined : "Use letters, digits and . _ / @ : + - characters.";
}

const TOO_LONG = `Use at most ${MAX_LABEL_LENGTH} characters.`;
