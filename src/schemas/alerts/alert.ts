import * as z from "zod";
import { Severity } from "../events.ts";
import { Selector, SelectorText } from "../fleet/selector.ts";
import { Description, integer } from "../primitives.ts";

/** Alerts that fire or have fired, and silences that hold back their notifications. */

const Labels = z.record(z.string(), z.string());

export const Alert = z
  .object({
    id: z.string(),
    rule_id: z.string(),
    rule: z.string().describe("The name of the rule when the alert fired."),
    severity: Severity,
    state: z.enum(["firing", "resolved"]),
    ap_id: z.string().nullable().describe("Null for an alert about a group of agents, such as a site."),
    group: z.string().nullable().describe("The label value of the group."),
    labels: Labels.describe("The labels of the agent or of the group when the alert fired, and those of the rule."),
    text: z.string(),
    value: z.number().nullable().describe("The value that explains the alert, if there is one."),
    fired_at: z.iso.datetime(),
    resolved_at: z.iso.datetime().nullable(),
    acknowledged_at: z.iso.datetime().nullable(),
    acknowledged_by: z.string().nullable(),
    silenced: z.boolean().describe("Whether a silence holds back its notification."),
  })
  .meta({ id: "Alert" });
export type Alert = z.output<typeof Alert>;

export const AlertsQuery = z.object({
  state: z.enum(["firing", "resolved", "all"]).default("firing"),
  selector: Selector.optional(),
  severity: Severity.optional().describe("The least severe to return."),
  before: z
    .string()
    .max(64)
    .optional()
    .describe("Returns only alerts that fired before the one with this `id`. Use it to get the next page."),
  limit: integer(z.int().gt(0).lte(1000)).default(100),
});
export type AlertsQuery = z.output<typeof AlertsQuery>;

export const AlertPath = z.object({ id: z.string().min(1).max(64) });

/** Days that a silence may last. */
export const MAX_SILENCE_DAYS = 90;
/** Silences that can be active at one time. */
export const MAX_SILENCES = 1_000;

export const SilenceCreate = z
  .object({
    selector: SelectorText.describe(
      "The alerts, by the labels of their agents and rules, and by `ap_id` and `rule_id`. Empty: all alerts.",
    ),
    until: z.iso.datetime({ offset: true }).describe(`At most ${MAX_SILENCE_DAYS} days ahead.`),
    reason: Description.default(""),
  })
  .meta({ id: "AlertSilenceCreate" });
export type SilenceCreate = z.output<typeof SilenceCreate>;

export const Silence = z
  .object({
    id: z.string(),
    selector: z.string(),
    reason: z.string(),
    author: z.string().describe("As in the audit trail."),
    created_at: z.iso.datetime(),
    until: z.iso.datetime(),
  })
  .meta({ id: "AlertSilence" });
export type Silence = z.output<typeof Silence>;
