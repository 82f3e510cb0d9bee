import { Hono } from "hono";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { body } from "../../http/validation.ts";
import { Backtest, BacktestRequest } from "../../schemas/alerts/backtest.ts";
import type { Services } from "../../services.ts";

export function backtestsRoutes(operation: Operation, { backtests }: Pick<Services, "backtests">) {
  return new Hono<AppEnv>().post(
    "/api/v1/alerts/rules/test",
    operation({
      action: "alerts.test",
      tag: "Alerts",
      summary: "Test an alert rule on the past",
      description:
        "Returns the alerts that the rule would have sent in a past period, by the evaluator of live data. Includes the agents that the caller " +
        "sees, with their labels of today. The evaluation starts with the first report of each agent in the period. Needs both scopes " +
        "`agents:read` and `telemetry:read`.",
      response: Backtest,
      errorResponses: { 413: "The body is too large, or the backtest takes too long" },
    }),
    body(BacktestRequest),
    async (c) => c.json(await backtests.run(c.get("actor"), c.req.valid("json"))),
  );
}
