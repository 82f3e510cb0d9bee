import { Hono } from "hono";
import * as z from "zod";
import { answer } from "../broker/rabbitmq-authorization.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { readBytes } from "../http/request/bytes.ts";
import { path } from "../http/validation.ts";
import type { Services } from "../services.ts";

const RabbitmqPath = z.object({ check: z.enum(["user", "vhost", "resource", "topic"]) });

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
      consumes: ["application/x-www-form-urlencoded"],
    }),
    path(RabbitmqPath),
    async (c) => {
      const question = new TextDecoder().decode(await readBytes(c));
      return c.text(await answer(c.req.valid("param").check, new URLSearchParams(question), options));
    },
  );
}
