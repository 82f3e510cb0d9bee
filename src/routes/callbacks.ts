import { Hono } from "hono";
import type * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, query } from "../http/validation.ts";
import { AnyItems, CallbackAnswer, CallbackQuery, ObjectItems } from "../schemas/job.ts";
import type { Services } from "../services.ts";

const CALLBACKS = [
  { kind: "agent_data", items: AnyItems, summary: "Post data to a job" },
  { kind: "agent_details", items: ObjectItems, summary: "Post agents' details to a job" },
  { kind: "emulator", items: ObjectItems, summary: "Post an emulator's results to a job" },
  { kind: "command", items: ObjectItems, summary: "Post the answer to a command to its job" },
] as const;

/** What subscribers have to say to whoever reads a job. */
export function callbacksRoutes(operation: Operation, { callbacks }: Pick<Services, "callbacks">) {
  const routes = new Hono<AppEnv>();
  for (const { kind, items, summary } of CALLBACKS) {
    routes.post(
      `/api/v1/callback/${kind}`,
      operation({
        action: `callbacks.${kind}`,
        tag: "Callbacks",
        summary,
        answer: CallbackAnswer,
        errorResponses: {
          409: "The job was cancelled or has expired",
          429: "The job holds all that it can of what nobody has read yet, or a quota of open jobs is exceeded, which the detail names. Retry-After says when to try again",
        },
      }),
      query(CallbackQuery),
      body<z.ZodType<unknown[]>>(items),
      async (c) => {
        const { job_number: jobNumber } = c.req.valid("query");
        const data = JSON.stringify(c.req.valid("json"));
        const key = c.req.header("Idempotency-Key");
        return c.json(await callbacks.take(c.get("actor"), kind, { jobNumber, data, key }));
      },
    );
  }
  return routes;
}
