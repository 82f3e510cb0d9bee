import { Hono } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, query } from "../http/validation.ts";
import { CommandRequest, CommandsQueued, CommandsRequest } from "../schemas/command.ts";
import { Queued } from "../schemas/job.ts";
import type { Services } from "../services.ts";

const QUOTA = { 429: "A quota of open jobs is exceeded; `detail` names it" };

export function commandsRoutes(
  operation: Operation,
  { commands, selectors }: Pick<Services, "commands" | "selectors">,
) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/send_command",
      operation({
        action: "commands.send",
        tag: "Agent operations",
        summary: "Send a command to an agent",
        description:
          "The agent receives the command over MQTT. Its result is the last message on the job's WebSocket. A job without a result within " +
          "a minute expires.",
        response: Queued,
        errorResponses: {
          400: "The agent does not know this command",
          404: "The agent does not exist",
          409:
            "The agent was sent another command within 10 seconds; for an administrator, only commands of administrators count. Retry " +
            "after the time in Retry-After",
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
        description:
          "Sends the command to named agents, or to all agents of a selector, of a type or in an area. Creates one job for each agent.",
        response: CommandsQueued,
        errorResponses: QUOTA,
      }),
      body(CommandsRequest),
      async (c) => {
        const request = c.req.valid("json");
        const at = { place: "body", loc: ["agents", "selector"] } as const;
        const selector = await selectors.resolve(c.get("actor"), request.agents.selector, at);
        return c.json(await commands.sendMany(c.get("actor"), request, selector));
      },
    );
}
