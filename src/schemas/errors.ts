import * as z from "zod";

export const HTTPValidationError = z
  .object({
    detail: z.array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() })),
  })
  .meta({ id: "HTTPValidationError" });

export const ErrorResponse = z.object({ detail: z.string() }).meta({ id: "Problem" });
