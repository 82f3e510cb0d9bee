import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import { jsonArray } from "../http/json-array.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { Agent, AgentCreate, AgentPath, AgentUpdate } from "../schemas/agent.ts";
import { AgentState } from "../schemas/metrics.ts";
import { Ack, ack } from "../schemas/primitives.ts";
import { SelectedPage } from "../schemas/selector.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/agents";
const TAG = "Agents";
const TAKEN = { 409: "An agent with this ap_id exists already" };
const UNKNOWN = { 404: "The agent does not exist" };

export function agentsRoutes(
  operation: Operation,
  { agents, metrics, selectors }: Pick<Services, "agents" | "metrics" | "selectors">,
) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "agents.list",
        tag: TAG,
        summary: "List agents and their state",
        response: z.array(AgentState),
      }),
      query(SelectedPage),
      async (c) => {
        const { selector, ...page } = c.req.valid("query");
        const resolved = await selectors.resolve(c.get("actor"), selector);
        return await jsonArray(c, metrics.agentStates(c.get("actor"), page, resolved));
      },
    )
    .post(
      `${BASE}/public`,
      operation({
        action: "agents.enrol",
        tag: TAG,
        summary: "Enrol a new access point",
        description:
          "An access point registers itself with an enrolment token as bearer token, and gets the labels of that token. Administrators may " +
          "use this operation too. Responds with 403 if the token has expired or is used up.",
        response: Agent,
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
        response: Agent,
        errorResponses: TAKEN,
      }),
      body(AgentCreate),
      async (c) => c.json(await agents.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/:ap_id`,
      operation({ action: "agents.read", tag: TAG, summary: "Get an agent", response: Agent, errorResponses: UNKNOWN }),
      path(AgentPath),
      async (c) => c.json(await agents.read(c.get("actor"), c.req.valid("param").ap_id)),
    )
    .put(
      `${BASE}/:ap_id`,
      operation({
        action: "agents.update",
        tag: TAG,
        summary: "Change an agent's password or configuration",
        description:
          "Fields that are absent or null stay unchanged. A new configuration replaces the old one completely.",
        response: Agent,
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
        response: Ack,
        errorResponses: UNKNOWN,
      }),
      path(AgentPath),
      async (c) => {
        await agents.delete(c.get("actor"), c.req.valid("param").ap_id);
        return c.json(ack("Agent deleted"));
      },
    );
}
