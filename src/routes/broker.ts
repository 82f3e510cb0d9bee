import { Hono } from "hono";
import * as z from "zod";
import { RabbitmqPath, RabbitmqQuestion } from "../broker/rabbitmq-question.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { form, path } from "../http/validation.ts";
import type { Services } from "../services.ts";

export function brokerRoutes(operation: Operation, options: Pick<Services, "authenticate" | "tokens">) {
  return new Hono<AppEnv>().post(
    "/api/v1/broker/rabbitmq/:check",
    operation({
      action: "broker.authorize",
      tag: "Broker",
      summary: "Authorize a client of RabbitMQ",
      description: "For RabbitMQ's plugin rabbitmq_auth_backend_http. Responds with `allow` or `deny`.",
      response: z.string(),
      produces: "text/plain",
    }),
    path(RabbitmqPath),
    form(RabbitmqQuestion),
    async (c) => {
      const { answer } = await import("../broker/rabbitmq-authorization.ts");
      return c.text(await answer(c.req.valid("param").check, c.req.valid("form"), options));
    },
  );
}
