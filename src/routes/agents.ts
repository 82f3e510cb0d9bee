import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import { jsonArray } from "../http/json-array.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { Agent, AgentCreate, AgentPath, AgentUpdate } from "../schemas/agent.ts";
import { AgentState } from "../schemas/metrics.ts";
import { Ack, ack, Page } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/agents";
const TAG = "Agents";
const TAKEN = { 409: "The ap_id is taken" };
const UNKNOWN = { 404: "There is no such agent" };

export function agentsRoutes(operation: Operation, { agents, metrics }: Pick<Services, "agents" | "metrics">) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "agents.list",
        tag: TAG,
        summary: "All agents and their state",
        answer: z.array(AgentState),
      }),
      query(Page),
      async (c) => await jsonArray(c, metrics.agentStates(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/public`,
      operation({
        action: "agents.enrol",
        tag: TAG,
        summary: "Enrol a new access point",
        description:
          "With the enrolment token as bearer: an access point registers itself. Also for administrators. A token that has expired, or " +
          "was used as often as `ENROLMENT_MAX_USES` says, is 403.",
        answer: Agent,
        errorResponses: TAKEN,
      }),
      body(AgentCreate),
      async (c) => c.json(await agents.enrol(c.get("actor"), c.req.valid("json"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "agents.create",
        tag: TAG,
        summary: "Register an agent",
        answer: Agent,
        errorResponses: TAKEN,
      }),
      body(AgentCreate),
      async (c) => c.json(await agents.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/:ap_id`,
      operation({ action: "agents.read", tag: TAG, summary: "One agent", answer: Agent, errorResponses: UNKNOWN }),
      path(AgentPath),
      async (c) => c.json(await agents.read(c.get("actor"), c.req.valid("param").ap_id)),
    )
    .put(
      `${BASE}/:ap_id`,
      operation({
        action: "agents.update",
        tag: TAG,
        summary: "Change an agent's password or configuration",
        description: "What is absent or null stays; a given configuration replaces the old one whole.",
        answer: Agent,
        errorResponses: UNKNOWN,
      }),
      path(AgentPath),
      body(AgentUpdate),
      async (c) => c.json(await agents.update(c.get("actor"), c.req.valid("param").ap_id, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:ap_id`,
      operation({
        action: "agents.delete",
        tag: TAG,
        summary: "Delete an agent",
        answer: Ack,
        errorResponses: UNKNOWN,
      }),
      path(AgentPath),
      async (c) => {
        await agents.delete(c.get("actor"), c.req.valid("param").ap_id);
        return c.json(ack("Agent deleted"));
      },
    );
}
