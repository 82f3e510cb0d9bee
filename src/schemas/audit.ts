import * as z from "zod";
import { integer } from "./primitives.ts";

export const AuditEntry = z
  .object({
    id: z.int(),
    at: z.iso.datetime(),
    request_id: z.string(),
    actor: z
      .string()
      .describe(
        "Who did it: `user:…`, `admin:…`, `agent:…`, `app:…`, `setup:…`, `enrolment:…`, `service…` or `anyone`.",
      ),
    action: z.string(),
    object: z
      .string()
      .describe(
        "What it was done to: `user:…`, `agent:…`, `app:…`, `job:…` (an emulation), or `agents` (several at once).",
      ),
    detail: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        "What belongs to the action: for a command `command`, `job_number`, `outcome` and the `reason` of a refusal; for an emulation " +
          "`access_points`, `job_number` and `outcome`.",
      ),
  })
  .meta({ id: "AuditEntry" });
export type AuditEntry = z.output<typeof AuditEntry>;

export const AuditQuery = z.object({
  actor: z.string().optional(),
  object: z.string().optional(),
  before: integer(z.int().gt(0)).optional().describe("Only entries older than the one with this `id`: the next page."),
  limit: integer(z.int().gt(0).lte(1000)).default(100),
});
export type AuditQuery = z.output<typeof AuditQuery>;
