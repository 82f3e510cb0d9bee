import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../../http/context.ts";
import type { Operation } from "../../http/operation.ts";
import { body, path } from "../../http/validation.ts";
import { Group, GroupPath, GroupSave, NewGroupPath } from "../../schemas/fleet/groups.ts";
import { Ack, ack } from "../../schemas/primitives.ts";
import type { Services } from "../../services.ts";

const BASE = "/api/v1/groups";
const TAG = "Groups";
const UNKNOWN = { 404: "The group does not exist" };

export function groupsRoutes(operation: Operation, { groups }: Pick<Services, "groups">) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "groups.list",
        tag: TAG,
        summary: "List groups",
        description: "A caller whose grants limit the agents gets only the groups that these grants name.",
        response: z.array(Group),
      }),
      async (c) => c.json(await groups.list(c.get("actor"))),
    )
    .get(
      `${BASE}/:name`,
      operation({ action: "groups.read", tag: TAG, summary: "Get a group", response: Group, errorResponses: UNKNOWN }),
      path(GroupPath),
      async (c) => c.json(await groups.read(c.get("actor"), c.req.valid("param").name)),
    )
    .put(
      `${BASE}/:name`,
      operation({
        action: "groups.save",
        tag: TAG,
        summary: "Create or replace a group",
        description:
          "Selectors refer to the group as `@name`. A new selector invalidates the tokens of accounts whose grants refer to the group.",
        response: Group,
        errorResponses: { 409: "There are too many groups" },
      }),
      path(NewGroupPath),
      body(GroupSave),
      async (c) => c.json(await groups.save(c.get("actor"), c.req.valid("param").name, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:name`,
      operation({
        action: "groups.delete",
        tag: TAG,
        summary: "Delete a group",
        response: Ack,
        errorResponses: { ...UNKNOWN, 409: "Grants refer to the group; `detail` names the accounts" },
      }),
      path(GroupPath),
      async (c) => {
        await groups.delete(c.get("actor"), c.req.valid("param").name);
        return c.json(ack("Group deleted"));
      },
    );
}
