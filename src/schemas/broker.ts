import * as z from "zod";

/** What RabbitMQ asks about: a login, or what a client that has logged in may use. */
export const RabbitmqPath = z.object({ check: z.enum(["user", "vhost", "resource", "topic"]) });
export type RabbitmqPath = z.output<typeof RabbitmqPath>;
