import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { query } from "../http/validation.ts";
import { requireHandshake } from "../http/web-socket.ts";
import { EVENT_LIMITS, EVENT_PROTOCOL, EventPage, EventStreamQuery, EventsQuery } from "../schemas/events.ts";
import type { Services } from "../services.ts";

const TAG = "Events";
const TOO_MANY = { 429: `The account already has ${EVENT_LIMITS.readersPerAccount} sockets and waiting requests` };

export function eventsRoutes(operation: Operation, { events, selectors }: Pick<Services, "events" | "selectors">) {
  return new Hono<AppEnv>()
    .get(
      "/api/v1/events",
      operation({
        action: "events.list",
        tag: TAG,
        summary: "List events",
        description:
          "Returns the events after a cursor that you see: those about agents in your scope, and those that belong to your account; " +
          "administrators also get those about accounts and the service. Continue with `next_after`. `/asyncapi.json` describes the types.",
        response: EventPage,
        errorResponses: TOO_MANY,
      }),
      query(EventsQuery),
      async (c) => {
        const { selector: terms, wait, ...page } = c.req.valid("query");
        const selector = await selectors.resolve(c.get("actor"), terms);
        return c.json(await events.list(c.get("currentActor"), { ...page, selector, waitMs: wait * 1000 }));
      },
    )
    .get(
      "/api/v1/events/ws",
      operation({
        action: "events.stream",
        webSocket: "events",
        tag: TAG,
        summary: "Read events over a WebSocket",
        description:
          "Sends each event as one JSON text, in order. Send the token in the header `Authorization`, or offer it as a protocol: " +
          `\`${EVENT_PROTOCOL}, bearer.<token>\`. Send \`{"ack": <id>}\` to acknowledge every event up to \`id\`, and resume with \`after\`.`,
        response: z.unknown(),
        errorResponses: TOO_MANY,
      }),
      query(EventStreamQuery),
      async (c) => {
        const offeredProtocols = requireHandshake(c);
        const { selector: terms, ...position } = c.req.valid("query");
        const selector = await selectors.resolve(c.get("actor"), terms);
        return await events.open(c.get("currentActor"), { ...position, selector }, offeredProtocols);
      },
    );
}
