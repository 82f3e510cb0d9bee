import { Hono } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, query } from "../http/validation.ts";
import { CommandMany, CommandRequest, ManyQueued } from "../schemas/command.ts";
import { Queued } from "../schemas/job.ts";
import type { Services } from "../services.ts";

const QUOTA = { 429: "A quota of open jobs is exceeded; the detail names it" };

export function commandsRoutes(operation: Operation, { commands }: Pick<Services, "commands">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/send_command",
      operation({
        action: "commands.send",
        tag: "Agent operations",
        summary: "Send a command to an agent",
        description:
          "The agent hears it over MQTT; its answer comes over the job's WebSocket, as the last message. A job that nobody answers within a " +
          "minute expires.",
        answer: Queued,
        errorResponses: {
          400: "The agent does not know this command",
          404: "There is no such agent",
          409: "The agent was sent another command within 10 seconds (an administrator's yields to administrators' only); Retry-After says when to try again",
          ...QUOTA,
        },
      }),
      query(CommandRequest),
      async (c) => c.json(await commands.send(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      "/api/v1/commands",
      operation({
        action: "commands.send_many",
        tag: "Agent operations",
        summary: "Send a command to many agents",
        description: "To those that are named, or to all of a kind or in an area. Each has a job of its own.",
        answer: ManyQueued,
        errorResponses: QUOTA,
      }),
      body(CommandMany),
      async (c) => c.json(await commands.sendMany(c.get("actor"), c.req.valid("json"))),
    );
}
