import * as z from "zod";
import { Severity } from "../events.ts";
import { CustomLabels } from "../fleet/labels.ts";
import { SelectorText } from "../fleet/selector.ts";
import { Description } from "../primitives.ts";

/** Alert rules: which state of an access point, or of a share of a group, people must hear about. */

export const OPERATORS = [">", ">=", "<", "<="] as const;
const Operator = z.enum(OPERATORS);
const isWellFormed = (text: string): boolean => text.isWellFormed();
const HALF = "the text has half of a character (a lone surrogate)";
const MetricName = z.string().min(1).max(200).refine(isWellFormed, HALF);
const DurationS = z
  .number()
  .gte(0)
  .lte(7 * 86_400);

const MAX_DEPTH = 3;
const MAX_CONDITIONS = 16;

/** A metric against a fixed value. */
export const Threshold = z
  .object({ metric: MetricName, op: Operator, value: z.number() })
  .meta({ id: "AlertThreshold" });
/** A metric against a multiple of its mean at the same hour of earlier days. */
export const Baseline = z
  .object({
    metric: MetricName,
    op: Operator,
    baseline: z.object({ days: z.int().gte(1).lte(28).default(7), factor: z.number().default(1) }),
  })
  .meta({ id: "AlertBaseline" });
/** The change of a metric per second, over a time. */
export const RateOfChange = z
  .object({ rate_of: MetricName, over_s: z.number().gte(1).lte(3_600), op: Operator, value: z.number() })
  .meta({ id: "AlertRate" });
/** No report for a time. */
export const Absence = z
  .object({
    no_report_s: z
      .number()
      .gte(1)
      .lte(7 * 86_400),
  })
  .meta({ id: "AlertAbsence" });

export type SimpleCondition =
  | z.output<typeof Threshold>
  | z.output<typeof Baseline>
  | z.output<typeof RateOfChange>
  | z.output<typeof Absence>;
export type Condition = SimpleCondition | { any: Condition[] } | { all: Condition[] };

export const Condition: z.ZodType<Condition> = z
  .lazy(() =>
    z.union([
      Threshold,
      Baseline,
      RateOfChange,
      Absence,
      z.object({ any: z.array(Condition).min(1).max(MAX_CONDITIONS) }),
      z.object({ all: z.array(Condition).min(1).max(MAX_CONDITIONS) }),
    ]),
  )
  .meta({ id: "AlertCondition" });

const isBounded = (condition: Condition): boolean => {
  const sizeOf = (one: Condition, depth: number): number => {
    if (depth > MAX_DEPTH) return Number.POSITIVE_INFINITY;
    const inner = "any" in one ? one.any : "all" in one ? one.all : [];
    return inner.reduce((sum, each) => sum + sizeOf(each, depth + 1), 1);
  };
  return sizeOf(condition, 1) <= 2 * MAX_CONDITIONS;
};
const Bounded = Condition.refine(isBounded, `at most ${MAX_DEPTH} levels and ${2 * MAX_CONDITIONS} conditions`);

export const RuleSpec = z
  .object({
    selector: SelectorText.default("").describe("The agents that the rule watches."),
    condition: Bounded,
    for_s: DurationS.default(0).describe("How long the condition must hold before the alert fires."),
    clear: z
      .object({
        condition: Bounded.optional().describe("Ends the alert. Default: the condition does not hold."),
        for_s: DurationS.default(0).describe("How long it must hold before the alert ends."),
      })
      .default({ for_s: 0 }),
    group: z
      .object({
        by: z.string().min(1).max(63).describe("The label whose values name the groups, such as `site`."),
        percent: z.number().gt(0).lte(100).describe("Fires if the condition holds for this share of a group's agents."),
      })
      .optional()
      .describe("One alert about a group instead of one about each agent."),
    severity: Severity.default("warning"),
    labels: CustomLabels.default({}).describe("Labels of its alerts, in addition to those of the agent."),
    text: z
      .string()
      .max(500)
      .refine(isWellFormed, HALF)
      .default("")
      .describe("For people. `{{ap_id}}`, `{{value}}`, `{{group}}` and `{{label}}` of any label are replaced."),
    description: Description.default(""),
  })
  .meta({ id: "AlertRuleSpec" });
export type RuleSpec = z.output<typeof RuleSpec>;
