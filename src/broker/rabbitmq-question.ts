import * as z from "zod";

/** What RabbitMQ asks about: a login, or what a client that has logged in may use. */
export const RabbitmqPath = z.object({ check: z.enum(["user", "vhost", "resource", "topic"]) });
export type RabbitmqPath = z.output<typeof RabbitmqPath>;

/** The questions of RabbitMQ's plugin rabbitmq_auth_backend_http. Each has some of these fields, and others. */
export const RabbitmqQuestion = z.object({
  username: z.string().default(""),
  /** Of a login: the client's token. */
  password: z.string().default(""),
  client_id: z.string().optional(),
  /** After a login: what the response to it has added. */
  tags: z.string().default(""),
  vhost: z.string().optional(),
  resource: z.string().default(""),
  name: z.string().default(""),
  permission: z.string().default(""),
  routing_key: z.string().default(""),
});
export type RabbitmqQuestion = z.output<typeof RabbitmqQuestion>;
