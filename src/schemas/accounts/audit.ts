import * as z from "zod";
import { integer } from "../primitives.ts";

export const AuditEntry = z
  .object({
    id: z.int(),
    at: z.iso.datetime(),
    request_id: z.string(),
    actor: z
      .string()
      .describe(
        "The account that acted: `user:…`, `admin:…`, `agent:…`, `app:…`, `setup:…`, `enrolment:…`, `service…` or `anyone`.",
      ),
    action: z.string(),
    object: z
      .string()
      .describe(
        "The object of the action: `user:…`, `agent:…`, `app:…`, `group:…`, `enrolment_token:…`, `subscription:…`, `job:…` (an emulation), " +
          "`alert_rule:…`, `alert:…`, `silence:…`, `address:…` (of failed logins), or `agents` (several at once).",
      ),
    detail: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        "Details of the action. For a command: `command`, `job_number`, `outcome`, and `reason` if it was refused. For an emulation: " +
          "`access_points`, `job_number` and `outcome`. For labels: `labels`, and `selector` and `agents` if there are several agents.",
      ),
  })
  .meta({ id: "AuditEntry" });
export type AuditEntry = z.output<typeof AuditEntry>;

export const AuditQuery = z.object({
  actor: z.string().optional(),
  object: z.string().optional(),
  before: integer(z.int().gt(0))
    .optional()
    .describe("Returns only entries older than the one with this `id`. Use it to get the next page."),
  limit: integer(z.int().gt(0).lte(1000)).default(100),
});
export type AuditQuery = z.output<typeof AuditQuery>;
