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
  MetricsQuery,
  MultiMetricData,
  MultiMetricQuery,
} from "../schemas/metrics.ts";
import { AgentReport, Delivered, Delivery, ReportAnswer } from "../schemas/telemetry.ts";
import type { Services } from "../services.ts";

const METRICS = "/api/v1/metrics";
const TAG = "Metrics";
const UNKNOWN = { 404: "There is no such agent" };

export function telemetryRoutes(operation: Operation, { reports, metrics }: Pick<Services, "reports" | "metrics">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/agent_update/update",
      operation({
        action: "telemetry.report",
        tag: "Agent operations",
        summary: "Onboard, and post telemetry",
        description:
          "By an agent, about itself. Nested values are flattened with `.`; numbers and booleans become metrics, texts are kept as texts; " +
          "everything else is named in the answer. With status 200 what was accepted is stored for good.",
        answer: ReportAnswer,
        errorResponses: { 409: "The configuration keeps changing" },
      }),
      body(AgentReport),
      async (c) => c.json(await reports.ingestReport(c.get("actor"), c.req.valid("json"))),
    )
    .post(
      "/api/v1/bridge/data",
      operation({
        action: "telemetry.deliver",
        tag: "Bridge",
        summary: "Bring what agents said to the broker",
        description:
          "For services with the permission `broker`. Each message is what the agent would have posted itself. One that cannot be stored " +
          "does not hold up the others: its result has an `error`.",
        answer: Delivered,
      }),
      body(Delivery),
      async (c) => c.json(await reports.ingestBatch(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${METRICS}/agent_details`,
      operation({ action: "agents.list", tag: TAG, summary: "All agents", answer: z.array(AgentDetails) }),
      query(AgentDetailsQuery),
      async (c) => await jsonArray(c, metrics.agentDetails(c.get("actor"), c.req.valid("query"))),
    )
    .get(
      `${METRICS}/agent_data`,
      operation({
        action: "telemetry.read",
        tag: TAG,
        summary: "All of an agent's telemetry",
        answer: AgentData,
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
        summary: "Some metrics of an agent",
        description: "For charts that ask about once a second; with `since` they get only what is new.",
        answer: MultiMetricData,
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
        summary: "Which metrics an agent has",
        answer: AgentMetrics,
        errorResponses: UNKNOWN,
      }),
      query(MetricsQuery),
      async (c) => c.json(await metrics.agentMetrics(c.get("actor"), c.req.valid("query"))),
    );
}
