import * as z from "zod";
import { CustomLabels } from "../fleet/labels.ts";
import { Description } from "../primitives.ts";
import { Timestamp } from "../telemetry.ts";

export const EnrolmentToken = z
  .object({
    id: z.string().describe("`settings` for the token that the setting `ENROLMENT_TOKEN` holds."),
    prefix: z.string().describe("The first characters of the token."),
    description: z.string(),
    labels: z.record(z.string(), z.string()).describe("Labels of the agents that it enrols."),
    max_uses: z.int().nullable().describe("Null: unlimited."),
    uses: z.int().describe("Number of agents that it has enrolled."),
    expires_at: z.iso.datetime().nullable().describe("Null: never."),
    created_by: z.string().describe("As the actor of an audit entry."),
    created_at: z.iso.datetime().nullable(),
    revoked_at: z.iso.datetime().nullable(),
  })
  .meta({ id: "EnrolmentToken" });
export type EnrolmentToken = z.output<typeof EnrolmentToken>;

export const NewEnrolmentToken = EnrolmentToken.extend({
  token: z.string().describe("The bearer token for `POST /api/v1/agents/public`. It is not shown again."),
}).meta({ id: "NewEnrolmentToken" });
export type NewEnrolmentToken = z.output<typeof NewEnrolmentToken>;

export const EnrolmentTokenCreate = z
  .object({
    description: Description.default(""),
    labels: CustomLabels.default({}),
    max_uses: z.int().gte(1).lte(1_000_000_000).nullable().default(null),
    expires_at: Timestamp.nullable().default(null).describe("UTC, unless it has an offset. Null: never."),
  })
  .meta({ id: "EnrolmentTokenCreate" });
export type EnrolmentTokenCreate = z.output<typeof EnrolmentTokenCreate>;

export const EnrolmentTokenPath = z.object({ id: z.string().max(64) });
