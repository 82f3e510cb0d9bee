import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import { jsonArray } from "../http/json-array.ts";
import type { Operation } from "../http/operation.ts";
import { body, query } from "../http/validation.ts";
import {
  AgentData,
  AgentDataQuery,
  AgentDetails,
  AgentDetailsQuery,
  AgentMetrics,
  Aggregate,
  AggregateQuery,
  MetricsQuery,
  MultiMetricData,
  MultiMetricQuery,
} from "../schemas/metrics.ts";
import { AgentReport, Delivered, Delivery, ReportResponse } from "../schemas/telemetry.ts";
import type { Services } from "../services.ts";

const METRICS = "/api/v1/metrics";
const TAG = "Metrics";
const UNKNOWN = { 404: "The agent does not exist" };

export function telemetryRoutes(
  operation: Operation,
  { reports, metrics, aggregates, selectors }: Pick<Services, "reports" | "metrics" | "aggregates" | "selectors">,
) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/agent_update/update",
      operation({
        action: "telemetry.report",
        tag: "Agent operations",
        summary: "Onboard and report telemetry",
        description:
          "For an agent, about itself. Nested fields are joined with `.`. Numbers and booleans become metrics; strings are stored as strings; " +
          "the response lists all other values as rejected. After status 200 the accepted values are stored durably.",
        response: ReportResponse,
        errorResponses: { 409: "Other requests keep changing the configuration" },
      }),
      body(AgentReport),
      async (c) => c.json(await reports.ingestReport(c.get("actor"), c.req.valid("json"))),
    )
    .post(
      "/api/v1/bridge/data",
      operation({
        action: "telemetry.deliver",
        tag: "Bridge",
        summary: "Deliver messages that agents published to the broker",
        description:
          "For apps with the permission `broker`. Each message has the same content as a request of the agent itself. A message that " +
          "cannot be stored does not affect the others: its result has an `error`.",
        response: Delivered,
      }),
      body(Delivery),
      async (c) => c.json(await reports.ingestBatch(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${METRICS}/agent_details`,
      operation({ action: "agents.list", tag: TAG, summary: "List agents", response: z.array(AgentDetails) }),
      query(AgentDetailsQuery),
      async (c) => await jsonArray(c, metrics.agentDetails(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${METRICS}/agent_data`,
      operation({
        action: "telemetry.read",
        tag: TAG,
        summary: "Get all telemetry of an agent",
        response: AgentData,
        errorResponses: UNKNOWN,
      }),
      query(AgentDataQuery),
      async (c) => c.json(await metrics.agentData(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${METRICS}/agent_multi_metric_data`,
      operation({
        action: "telemetry.read",
        tag: TAG,
        summary: "Get some metrics of an agent",
        description: "For charts that poll about once a second. With `since`, only new points are returned.",
        response: MultiMetricData,
        errorResponses: UNKNOWN,
      }),
      query(MultiMetricQuery),
      async (c) =>
        c.body(await metrics.multiMetricData(c.get("actor"), c.req.valid("query")), 200, {
          "Content-Type": "application/json",
        }),
    )
    .get(
      `${METRICS}/agent_metrics`,
      operation({
        action: "telemetry.read",
        tag: TAG,
        summary: "List the metrics of an agent",
        response: AgentMetrics,
        errorResponses: UNKNOWN,
      }),
      query(MetricsQuery),
      async (c) => c.json(await metrics.agentMetrics(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${METRICS}/aggregate`,
      operation({
        action: "telemetry.aggregate",
        tag: TAG,
        summary: "Get statistics of metrics over many agents",
        description:
          "Time is divided into buckets of whole minutes: at most 500, and fewer for many series or very many agents. In each bucket an agent " +
          "has one value of a metric, the mean of its samples. The statistic is computed from these values of the agents of a group: `sum` adds them " +
          "up, `count` is the number of agents with a value, `p50` and `p95` are the value of that rank. `by` divides the agents into groups, " +
          "at most 200; agents without the label are in the group with null. So the sums of all groups add up to the sum without `by`. " +
          "Groups follow the present labels, also for earlier times. If the caller sees all agents and gives no selector, agents that were " +
          "deleted since then count as well, without labels. Needs both scopes `agents:read` and `telemetry:read`.",
        response: Aggregate,
      }),
      query(AggregateQuery),
      async (c) => {
        const { selector, ...request } = c.req.valid("query");
        const resolved = await selectors.resolve(c.get("actor"), selector);
        return c.json(await aggregates.read(c.get("actor"), request, resolved));
      },
    );
}
