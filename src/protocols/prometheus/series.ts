import {
  escapePrometheusLabel,
  escapePrometheusName,
  formatMetricName,
  type Labels,
  parseMetricName,
  unescapePrometheusName,
} from "../metric-name.ts";
import { compileRegex, newStepBudget, type StepBudget } from "./regex.ts";
import type { Matcher } from "./remote-read.ts";

/** Translates between stored metrics of agents and time series of Prometheus. */

/** Says which agents exist: one series for each, with the labels of the agent. */
export const INFO_METRIC = "access_point_info";
const NAME_LABEL = "__name__";

export type SeriesLabels = [name: string, value: string][];

/** A series before its names are escaped. */
export interface NamedSeries {
  name: string;
  labels: Labels;
}

/** Returns the series of a stored metric of an agent. `agentLabel` is the label that names the agent. */
export function seriesOf(metric: string, apId: string, agentLabel: string): NamedSeries {
  const { name, labels } = parseMetricName(metric);
  return { name, labels: withAgent(labels, apId, agentLabel) };
}

/** Returns the series that says that an agent exists. */
export const infoSeriesOf = (labels: Labels, apId: string, agentLabel: string): NamedSeries => ({
  name: INFO_METRIC,
  labels: withAgent(labels, apId, agentLabel),
});

/** Adds the label that names the agent. A label of the metric with the same name is renamed, as Prometheus does when it scrapes. */
function withAgent(labels: Labels, apId: string, agentLabel: string): Labels {
  if (!Object.hasOwn(labels, agentLabel)) return { ...labels, [agentLabel]: apId };
  let renamed = `exported_${agentLabel}`;
  while (Object.hasOwn(labels, renamed)) renamed = `exported_${renamed}`;
  const { [agentLabel]: value = "", ...others } = labels;
  return { ...others, [renamed]: value, [agentLabel]: apId };
}

/** Returns the labels with the name, sorted as Prometheus expects them. Without `isEscaped` names stay as they are: Prometheus 3 accepts any. */
export function toSeriesLabels({ name, labels }: NamedSeries, isEscaped = true): SeriesLabels {
  const pairs = Object.entries(labels)
    // To Prometheus, an empty label is no label.
    .filter(([key, value]) => value !== "" && key !== NAME_LABEL)
    .map(([key, value]): [string, string] => [isEscaped ? escapePrometheusLabel(key) : key, value]);
  pairs.push([NAME_LABEL, isEscaped ? escapePrometheusName(name) : name]);
  return pairs.sort(([a], [b]) => compareTexts(a, b));
}

/** Compares as Prometheus does: label by label, first the names, then the values. */
export function compareSeries(a: SeriesLabels, b: SeriesLabels): number {
  for (const [i, [name, value]] of a.entries()) {
    const other = b[i];
    if (other === undefined) return 1;
    const difference = compareTexts(name, other[0]) || compareTexts(value, other[1]);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Compares by the bytes of UTF-8, which is the order of code points. */
function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = rankOf(a.charCodeAt(i)) - rankOf(b.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates stand for code points beyond all others. */
const rankOf = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);

type Test = (value: string) => boolean;

/** The series that the matchers of a query select. */
export class SeriesSelector {
  /** The names of the metrics, if the matchers list them. */
  readonly names: readonly string[] | undefined;
  /** Whether names are returned in escaped form. False if the query itself has a name with other characters. */
  readonly isEscaped: boolean;
  readonly #agentLabel: string;
  readonly #nameTests: Test[] = [];
  readonly #labelTests: { label: string; test: Test }[] = [];

  /** Throws `RegexError` if an expression is not valid. */
  constructor(matchers: readonly Matcher[], agentLabel: string, budget: StepBudget = newStepBudget()) {
    this.#agentLabel = agentLabel;
    let names: readonly string[] | undefined;
    for (const matcher of matchers) {
      const { test, literals } = compile(matcher, budget);
      if (matcher.name === NAME_LABEL) {
        this.#nameTests.push(nameTest(matcher, test));
        if (literals !== undefined)
          names ??= [...new Set(literals.flatMap((text) => [text, unescapePrometheusName(text)]))];
      } else this.#labelTests.push({ label: unescapePrometheusName(matcher.name), test });
    }
    this.names = names;
    this.isEscaped = matchers.every(
      ({ type, name, value }) =>
        escapePrometheusLabel(unescapePrometheusName(name)) === name &&
        (name !== NAME_LABEL || type !== "=" || escapePrometheusName(unescapePrometheusName(value)) === value),
    );
  }

  /** Returns whether series of this agent can be selected. */
  selectsAgent(apId: string): boolean {
    return this.#labelTests.every(({ label, test }) => label !== this.#agentLabel || test(apId));
  }

  selects({ name, labels }: NamedSeries): boolean {
    return (
      this.#nameTests.every((test) => test(name)) &&
      this.#labelTests.every(({ label, test }) => test(Object.hasOwn(labels, label) ? (labels[label] ?? "") : ""))
    );
  }

  /** Returns whether a metric of this name can be selected. */
  selectsName(name: string): boolean {
    return this.#nameTests.every((test) => test(name));
  }
}

function compile(
  { type, value }: Matcher,
  budget: StepBudget,
): { test: Test; literals?: readonly string[] | undefined } {
  if (type === "=") return { test: (text) => text === value, literals: [value] };
  if (type === "!=") return { test: (text) => text !== value };
  const { matches, literals } = compileRegex(value, budget);
  return type === "=~" ? { test: matches, literals } : { test: (text) => !matches(text) };
}

/** Returns a test of a metric's own name. An expression may describe the name or its escaped form, which Prometheus shows. */
function nameTest({ type, value }: Matcher, test: Test): Test {
  if (type === "=") return (name) => name === unescapePrometheusName(value);
  if (type === "!=") return (name) => name !== unescapePrometheusName(value);
  if (type === "=~") return (name) => test(name) || test(escapePrometheusName(name));
  return (name) => test(name) && test(escapePrometheusName(name));
}

/**
 * Returns the stored names of a metric: those without labels, and the beginning of all with labels. An agent may have stored the name
 * without escapes.
 */
export function storedNamesOf(name: string): { exact: string[]; prefix: string } {
  const escaped = formatMetricName(name, {});
  return { exact: [...new Set([name, escaped])], prefix: `${escaped}{` };
}
