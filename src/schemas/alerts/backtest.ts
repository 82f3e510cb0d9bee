import * as z from "zod";
import { customIssue } from "../primitives.ts";
import { Timestamp } from "../telemetry.ts";
import { RuleSpec } from "./rule.ts";

/** Backtests: the alerts that a rule would have sent. */

export const RESOLUTIONS = ["minutes", "samples"] as const;
const DAY_MS = 86_400_000;
const MAX_DAYS = { minutes: 400, samples: 31 } as const;

export const BacktestRequest = z
  .object({
    rule: RuleSpec,
    from: Timestamp,
    to: Timestamp.optional().describe("Default: now."),
    resolution: z
      .enum([...RESOLUTIONS, "auto"])
      .default("auto")
      .describe(
        `\`samples\` evaluates every stored sample, up to ${MAX_DAYS.samples} days. \`minutes\` evaluates the mean of each minute, up to ` +
          `${MAX_DAYS.minutes} days. \`auto\`: samples for few agents or a short period, otherwise minutes.`,
      ),
    limit: z.int().gte(0).lte(10_000).default(1_000).describe("Lists at most this many alerts, the earliest ones."),
  })
  .superRefine(({ from, to = Date.now(), resolution }, context) => {
    const reject = (msg: string) =>
      context.addIssue({ ...customIssue("value_error", `Value error, ${msg}`), path: ["to"] });
    const maxDays = MAX_DAYS[resolution === "auto" ? "minutes" : resolution];
    if (to <= from) reject("to must be after from");
    else if (to - from > maxDays * DAY_MS) reject(`the period must not exceed ${maxDays} days`);
  })
  .meta({ id: "AlertRuleTest" });
export type BacktestRequest = z.output<typeof BacktestRequest>;
export const MAX_SAMPLES_MS = MAX_DAYS.samples * DAY_MS;

const About = {
  ap_id: z.string().nullable().describe("The agent. Null for an alert about a group."),
  group: z.string().nullable().describe("The label value of the group. Null for an alert about an agent."),
};

export const Backtest = z
  .object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    resolution: z.enum(RESOLUTIONS),
    agents: z.int().describe("Number of agents that the rule watches."),
    total: z.int().describe("Number of alerts."),
    alerts: z.array(
      z.object({
        ...About,
        fired_at: z.iso.datetime(),
        resolved_at: z.iso.datetime().nullable().describe("Null: it fires at the end of the period."),
        duration_s: z.number().describe("Until the end of the period if it still fires."),
        value: z
          .number()
          .nullable()
          .describe(
            "The value that made it fire: of the metric, the seconds without a report, or the percentage of a group.",
          ),
        text: z.string(),
      }),
    ),
    flaps: z.object({
      total: z.int().describe("How often an alert fired again within 10 minutes after it was resolved."),
      most: z.array(z.object({ ...About, flaps: z.int() })).describe("The agents or groups with the most, up to 100."),
    }),
    truncated: z
      .boolean()
      .describe("The rule gives too many alerts or changes to evaluate them all: `total` and `flaps` are too low."),
  })
  .meta({ id: "AlertRuleTestResult" });
export type Backtest = z.output<typeof Backtest>;
