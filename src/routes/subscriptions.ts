import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { Ack, ack } from "../schemas/primitives.ts";
import {
  NewSubscription,
  Subscription,
  SubscriptionCreate,
  SubscriptionPath,
  SubscriptionsQuery,
  SubscriptionTest,
  SubscriptionUpdate,
} from "../schemas/subscriptions.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/subscriptions";
const TAG = "Subscriptions";
const UNKNOWN = { 404: "The subscription does not exist, or belongs to another account" };

export function subscriptionsRoutes(operation: Operation, { subscriptions }: Pick<Services, "subscriptions">) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "subscriptions.list",
        tag: TAG,
        summary: "List subscriptions",
        description: "Returns the caller's own, oldest first. Administrators get those of all accounts.",
        response: z.array(Subscription),
      }),
      query(SubscriptionsQuery),
      async (c) => c.json(await subscriptions.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "subscriptions.create",
        tag: TAG,
        summary: "Subscribe to events",
        description:
          "Delivers every event from now on that the filter selects and the caller sees: to a webhook (Standard Webhooks), an MQTT topic, an " +
          "e-mail address or an Alertmanager; at least once, and in order per agent. Only this response contains the key of a webhook's " +
          "signatures.",
        response: NewSubscription,
        errorResponses: { 409: "The account or the service has too many subscriptions" },
      }),
      body(SubscriptionCreate),
      async (c) => c.json(await subscriptions.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/:id`,
      operation({
        action: "subscriptions.read",
        tag: TAG,
        summary: "Get a subscription",
        response: Subscription,
        errorResponses: UNKNOWN,
      }),
      path(SubscriptionPath),
      async (c) => c.json(await subscriptions.read(c.get("actor"), c.req.valid("param").id)),
    )
    .put(
      `${BASE}/:id`,
      operation({
        action: "subscriptions.update",
        tag: TAG,
        summary: "Change a subscription",
        description:
          "Absent fields stay unchanged. A new address ends the back-off. Credentials of a URL stay only with the same address.",
        response: Subscription,
        errorResponses: UNKNOWN,
      }),
      path(SubscriptionPath),
      body(SubscriptionUpdate),
      async (c) => c.json(await subscriptions.update(c.get("actor"), c.req.valid("param").id, c.req.valid("json"))),
    )
    .post(
      `${BASE}/:id/rotate_secret`,
      operation({
        action: "subscriptions.rotate_secret",
        tag: TAG,
        summary: "Replace the key of a webhook's signatures",
        description: "Only this response contains the new key. The old one is not used any more within a second.",
        response: NewSubscription,
        errorResponses: UNKNOWN,
      }),
      path(SubscriptionPath),
      async (c) => c.json(await subscriptions.rotateSecret(c.get("actor"), c.req.valid("param").id)),
    )
    .post(
      `${BASE}/:id/test`,
      operation({
        action: "subscriptions.test",
        tag: TAG,
        summary: "Send a test event",
        description: "Sends one event of the type `subscription.test` to the target at once, and returns the outcome.",
        response: SubscriptionTest,
        errorResponses: { ...UNKNOWN, 429: "More than 10 tests within a minute" },
      }),
      path(SubscriptionPath),
      async (c) => c.json(await subscriptions.test(c.get("actor"), c.req.valid("param").id)),
    )
    .post(
      `${BASE}/:id/resume`,
      operation({
        action: "subscriptions.resume",
        tag: TAG,
        summary: "Resume a stopped subscription",
        description: "Delivers the events since then, as far as they are retained. Has no effect if it is not stopped.",
        response: Subscription,
        errorResponses: UNKNOWN,
      }),
      path(SubscriptionPath),
      async (c) => c.json(await subscriptions.resume(c.get("actor"), c.req.valid("param").id)),
    )
    .delete(
      `${BASE}/:id`,
      operation({
        action: "subscriptions.delete",
        tag: TAG,
        summary: "Delete a subscription",
        response: Ack,
        errorResponses: UNKNOWN,
      }),
      path(SubscriptionPath),
      async (c) => {
        await subscriptions.delete(c.get("actor"), c.req.valid("param").id);
        return c.json(ack("Subscription deleted"));
      },
    );
}
