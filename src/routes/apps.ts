import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { AppPath, ThirdPartyApp, ThirdPartyAppCreate, ThirdPartyAppUpdate } from "../schemas/app.ts";
import { Grants } from "../schemas/grants.ts";
import { Ack, ack, Page } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/third_party_apps";
const TAG = "Third-party apps";
const UNKNOWN = { 404: "The app does not exist" };

export function appsRoutes(operation: Operation, { apps }: Pick<Services, "apps">) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "apps.list",
        tag: TAG,
        summary: "List third-party apps",
        description: "Returns the apps with their keys, sorted by name.",
        response: z.array(ThirdPartyApp),
      }),
      query(Page),
      async (c) => c.json(await apps.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "apps.create",
        tag: TAG,
        summary: "Register a third-party app",
        response: ThirdPartyApp,
        errorResponses: { 409: "An app with this app_name exists already" },
      }),
      body(ThirdPartyAppCreate),
      async (c) => c.json(await apps.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/:app_name`,
      operation({
        action: "apps.read",
        tag: TAG,
        summary: "Get a third-party app",
        response: ThirdPartyApp,
        errorResponses: UNKNOWN,
      }),
      path(AppPath),
      async (c) => c.json(await apps.read(c.get("actor"), c.req.valid("param").app_name)),
    )
    .put(
      `${BASE}/:app_name`,
      operation({
        action: "apps.update",
        tag: TAG,
        summary: "Change an app's key or permissions",
        description:
          "Fields that are absent or null stay unchanged. New permissions replace the old ones completely. All earlier tokens of the app become " +
          "invalid.",
        response: ThirdPartyApp,
        errorResponses: UNKNOWN,
      }),
      path(AppPath),
      body(ThirdPartyAppUpdate),
      async (c) => c.json(await apps.update(c.get("actor"), c.req.valid("param").app_name, c.req.valid("json"))),
    )
    .get(
      `${BASE}/:app_name/grants`,
      operation({
        action: "apps.read_grants",
        tag: TAG,
        summary: "Get an app's grants",
        description:
          "Grants say which agents the app may see, command and manage. `ap_ids` in the permissions limit it further.",
        response: Grants,
        errorResponses: UNKNOWN,
      }),
      path(AppPath),
      async (c) => c.json(await apps.readGrants(c.get("actor"), c.req.valid("param").app_name)),
    )
    .put(
      `${BASE}/:app_name/grants`,
      operation({
        action: "apps.change_grants",
        tag: TAG,
        summary: "Replace an app's grants",
        description:
          "All earlier tokens of the app become invalid, and its sockets without access are closed within five seconds. An app that is limited " +
          "to some agents cannot use the broker. A syntax error in a selector and an unknown group are reported with their position.",
        response: Grants,
        errorResponses: UNKNOWN,
      }),
      path(AppPath),
      body(Grants),
      async (c) => c.json(await apps.changeGrants(c.get("actor"), c.req.valid("param").app_name, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:app_name`,
      operation({ action: "apps.delete", tag: TAG, summary: "Delete an app", response: Ack, errorResponses: UNKNOWN }),
      path(AppPath),
      async (c) => {
        await apps.delete(c.get("actor"), c.req.valid("param").app_name);
        return c.json(ack("Third-party app deleted"));
      },
    );
}
