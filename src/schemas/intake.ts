import * as z from "zod";
import { ErrorResponse } from "./primitives.ts";

/** Inputs and responses of the operations that accept metrics in the protocols of other systems. */

/** The response to lines of which some were rejected, as InfluxDB 2 sends it. `error` is for clients of InfluxDB 1. */
export const InfluxError = z
  .union([
    z.object({
      code: z.string(),
      message: z.string(),
      line: z.int().optional().describe("The first line that was rejected."),
      error: z.string(),
    }),
    ErrorResponse,
  ])
  .meta({ id: "InfluxError" });

export const InfluxQuery = z.object({
  precision: z.string().optional().describe("Unit of the timestamps: `ns` (default), `us`, `ms` or `s`."),
  u: z.string().optional().describe("Instead of a header: `app_name`, or `agent/` and an `ap_id`."),
  p: z.string().optional().describe("Instead of a header: the app's API key, or the agent's password."),
});

export const OpenWispPath = z.object({ id: z.string().describe("`ap_id` of the agent.") });

export const OpenWispQuery = z.object({
  key: z.string().optional().describe("Instead of a header: the agent's password."),
  time: z.string().optional().describe("Time of the report in UTC, as `31-12-2026_23:59:59.000000`. Default: now."),
});
