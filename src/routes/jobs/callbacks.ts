import { Hono } from "hono";
import type * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { header, jsonText, query } from "../../http/validation.ts";
import { AnyItems, CallbackHeaders, CallbackQuery, CallbackResponse, ObjectItems } from "../../schemas/job.ts";
import type { Services } from "../../services.ts";

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
          429: "The job's buffer of unread messages is full, or a quota of open jobs is exceeded (`detail` names it); retry after `Retry-After` seconds",
        },
      }),
      query(CallbackQuery),
      jsonText<z.ZodType<unknown[]>>(items),
      header(CallbackHeaders),
      async (c) => {
        const { job_number: jobNumber } = c.req.valid("query");
        const { value, text } = c.req.valid("json");
        const key = c.req.valid("header")["Idempotency-Key"];
        return c.json(await callbacks.accept(c.get("actor"), kind, { jobNumber, items: value, text, key }));
      },
    );
  }
  return routes;
}
