import { Hono } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { query } from "../http/validation.ts";
import { Overview } from "../schemas/overview.ts";
import { Page } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

export function overviewRoutes(operation: Operation, { overview }: Pick<Services, "overview">) {
  return new Hono<AppEnv>().get(
    "/api/v1/overview",
    operation({
      action: "agents.overview",
      tag: "Agents",
      summary: "The whole network at a glance",
      description:
        "All access points: where they are, whether they are there, and their latest figures. Made to be asked every few seconds; what " +
        "it tells may be a few seconds old. Needs the scope `agents:read` besides `telemetry:read`. Figures are kept in memory: after a " +
        "restart of the service they are null until the access point next reports. `limit` and `offset` select a part, in the order of names.",
      answer: Overview,
    }),
    query(Page),
    async (c) =>
      c.body(await overview.json(c.get("actor"), c.req.valid("query")), 200, { "Content-Type": "application/json" }),
  );
}
