import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { body, path } from "../../http/validation.ts";
import { AlertRule, AlertRulePath, AlertRuleSave, MAX_RULES } from "../../schemas/alerts/saved-rule.ts";
import { Ack, ack } from "../../schemas/primitives.ts";
import type { Services } from "../../services.ts";

const BASE = "/api/v1/alerts/rules";
const TAG = "Alerts";
const UNKNOWN = { 404: "The rule does not exist" };
const DUPLICATE = "The name is taken";

export function alertRulesRoutes(operation: Operation, { alertRules }: Pick<Services, "alertRules">) {
  return new Hono<AppEnv>()
    .get(
      BASE,
      operation({
        action: "alert_rules.list",
        tag: TAG,
        summary: "List alert rules",
        description: "The predefined rules for 5G, WiFi and LiFi are disabled at first.",
        response: z.array(AlertRule),
      }),
      async (c) => c.json(await alertRules.list(c.get("actor"))),
    )
    .post(
      BASE,
      operation({
        action: "alert_rules.create",
        tag: TAG,
        summary: "Create an alert rule",
        description: "Reports that follow are evaluated with it.",
        response: AlertRule,
        errorResponses: { 409: `${DUPLICATE}, or there are ${MAX_RULES} rules` },
      }),
      body(AlertRuleSave),
      async (c) => c.json(await alertRules.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/:id`,
      operation({
        action: "alert_rules.read",
        tag: TAG,
        summary: "Get an alert rule",
        response: AlertRule,
        errorResponses: UNKNOWN,
      }),
      path(AlertRulePath),
      async (c) => c.json(await alertRules.read(c.get("actor"), c.req.valid("param").id)),
    )
    .put(
      `${BASE}/:id`,
      operation({
        action: "alert_rules.replace",
        tag: TAG,
        summary: "Replace an alert rule",
        description:
          "Alerts of the rule end if it is disabled, if it does not watch their agents any more, or if its conditions, durations or groups " +
          "change. They then fire again if the new conditions hold.",
        response: AlertRule,
        errorResponses: { ...UNKNOWN, 409: DUPLICATE },
      }),
      path(AlertRulePath),
      body(AlertRuleSave),
      async (c) => c.json(await alertRules.replace(c.get("actor"), c.req.valid("param").id, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:id`,
      operation({
        action: "alert_rules.delete",
        tag: TAG,
        summary: "Delete an alert rule",
        description: "Its alerts end.",
        response: Ack,
        errorResponses: UNKNOWN,
      }),
      path(AlertRulePath),
      async (c) => {
        await alertRules.delete(c.get("actor"), c.req.valid("param").id);
        return c.json(ack("Alert rule deleted"));
      },
    );
}
