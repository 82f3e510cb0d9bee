import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { body, path, query } from "../../http/validation.ts";
import { Alert, AlertPath, AlertsQuery, Silence, SilenceCreate } from "../../schemas/alerts/alert.ts";
import { Ack, ack } from "../../schemas/primitives.ts";
import type { Services } from "../../services.ts";

const BASE = "/api/v1/alerts";
const TAG = "Alerts";

export function alertsRoutes(operation: Operation, { alerts, silences }: Pick<Services, "alerts" | "silences">) {
  return new Hono<AppEnv>()
    .get(
      BASE,
      operation({
        action: "alerts.list",
        tag: TAG,
        summary: "List alerts",
        description:
          "Lists alerts that fire now, or that have fired, those that fired last first. To get the next page, set `before` to the `id` of " +
          "the last alert. Resolved alerts are kept for 90 days.",
        response: z.array(Alert),
      }),
      query(AlertsQuery),
      async (c) => c.json(await alerts.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/:id/acknowledge`,
      operation({
        action: "alerts.acknowledge",
        tag: TAG,
        summary: "Acknowledge an alert",
        description: "Records that the caller takes care of the alert. The first acknowledgement counts.",
        response: Alert,
        errorResponses: { 404: "The alert does not exist" },
      }),
      path(AlertPath),
      async (c) => c.json(await alerts.acknowledge(c.get("actor"), c.req.valid("param").id)),
    )
    .get(
      `${BASE}/silences`,
      operation({
        action: "silences.list",
        tag: TAG,
        summary: "List silences",
        description: "Lists silences that have not ended. A caller whose grants limit the agents gets only its own.",
        response: z.array(Silence),
      }),
      async (c) => c.json(await silences.list(c.get("actor"))),
    )
    .post(
      `${BASE}/silences`,
      operation({
        action: "silences.create",
        tag: TAG,
        summary: "Create a silence",
        description:
          "Holds back the notifications of alerts that fire while it lasts, for agents that the caller may operate. An alert that still " +
          "fires when the silence ends notifies then.",
        response: Silence,
        errorResponses: { 409: "There are too many silences" },
      }),
      body(SilenceCreate),
      async (c) => c.json(await silences.create(c.get("actor"), c.req.valid("json"))),
    )
    .delete(
      `${BASE}/silences/:id`,
      operation({
        action: "silences.delete",
        tag: TAG,
        summary: "End a silence",
        description: "Alerts that it held back and that still fire notify now.",
        response: Ack,
        errorResponses: { 404: "The silence does not exist" },
      }),
      path(AlertPath),
      async (c) => {
        await silences.delete(c.get("actor"), c.req.valid("param").id);
        return c.json(ack("Silence ended"));
      },
    );
}
