import * as z from "zod";
import { RuleSpec } from "./rule.ts";

/** Rules that can exist at one time. Shards evaluate all enabled ones for every report. */
export const MAX_RULES = 200;

const RuleName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .refine((text) => text.isWellFormed(), "the name has half of a character (a lone surrogate)");

export const AlertRulePath = z.object({ id: z.string().min(1).max(64) });

export const AlertRuleSave = z
  .object({
    name: RuleName,
    enabled: z.boolean().default(true),
    spec: RuleSpec,
  })
  .meta({ id: "AlertRuleSave" });
export type AlertRuleSave = z.output<typeof AlertRuleSave>;

export const AlertRule = z
  .object({
    id: z.string(),
    name: z.string(),
    enabled: z.boolean(),
    spec: RuleSpec,
    version: z.int().describe("Grows with every change."),
    created_by: z.string().describe("The author, as in the audit trail. `service` for the predefined rules."),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "AlertRule" });
export type AlertRule = z.output<typeof AlertRule>;
