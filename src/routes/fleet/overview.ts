import { Hono } from "hono";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { query } from "../../http/validation.ts";
import { Overview } from "../../schemas/fleet/overview.ts";
import { SelectedPage } from "../../schemas/fleet/selector.ts";
import type { Services } from "../../services.ts";

export function overviewRoutes(
  operation: Operation,
  { overview, selectors }: Pick<Services, "overview" | "selectors">,
) {
  return new Hono<AppEnv>().get(
    "/api/v1/overview",
    operation({
      action: "agents.overview",
      tag: "Agents",
      summary: "Get the state of all access points",
      description:
        "Returns the position, presence and latest metrics of each access point. Clients may poll it every few seconds; the data may be a " +
        "few seconds old. Needs both scopes `agents:read` and `telemetry:read`. Metrics are kept in memory: after a restart of the service " +
        "they are null until the access point reports again. `limit` and `offset` select a page, sorted by name.",
      response: Overview,
    }),
    query(SelectedPage),
    async (c) => {
      const { selector, ...page } = c.req.valid("query");
      const resolved = await selectors.resolve(c.get("actor"), selector);
      const json = await overview.json(c.get("actor"), page, resolved);
      return c.body(json, 200, { "Content-Type": "application/json" });
    },
  );
}
