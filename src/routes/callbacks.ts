import { Hono } from "hono";
import type * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, header, query } from "../http/validation.ts";
import { AnyItems, CallbackHeaders, CallbackQuery, CallbackResponse, ObjectItems } from "../schemas/job.ts";
import type { Services } from "../services.ts";

const CALLBACKS = [
  { kind: "agent_data", items: AnyItems, summary: "Post data to a job" },
  { kind: "agent_details", items: ObjectItems, summary: "Post details of agents to a job" },
  { kind: "emulator", items: ObjectItems, summary: "Post an emulator's results to a job" },
  { kind: "command", items: ObjectItems, summary: "Post the result of a command to its job" },
] as const;

/** Accepts data from callback clients and sends it to the readers of a job. */
export function callbacksRoutes(operation: Operation, { callbacks }: Pick<Services, "callbacks">) {
  const routes = new Hono<AppEnv>();
  for (const { kind, items, summary } of CALLBACKS) {
    routes.post(
      `/api/v1/callback/${kind}`,
      operation({
        action: `callbacks.${kind}`,
        tag: "Callbacks",
        summary,
        response: CallbackResponse,
        errorResponses: {
          409: "The job was cancelled or has expired",
          429: "The job has no space for more unacknowledged messages. Retry after the time in Retry-After",
        },
      }),
      query(CallbackQuery),
      body<z.ZodType<unknown[]>>(items),
      header(CallbackHeaders),
      async (c) => {
        const { job_number: jobNumber } = c.req.valid("query");
        const data = JSON.stringify(c.req.valid("json"));
        const key = c.req.valid("header")["Idempotency-Key"];
        return c.json(await callbacks.take(c.get("actor"), kind, { jobNumber, data, key }));
      },
    );
  }
  return routes;
}
