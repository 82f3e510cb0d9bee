import { Hono } from "hono";
import * as z from "zod";
import { type AppEnv, runAfterResponse } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import { Grants } from "../schemas/grants.ts";
import { Ack, ack, Page } from "../schemas/primitives.ts";
import {
  PasswordRecoveryRequest,
  PasswordReset,
  TokenData,
  UserCreate,
  UserPath,
  UserRegister,
  UserUpdate,
} from "../schemas/user.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/users";
const TAG = "Users";
const TAKEN = { 409: "A user with this name exists already" };
const UNKNOWN = { 404: "The user does not exist" };
const LIMITED = { 429: "Too many attempts. Retry after the time in Retry-After" };

export function usersRoutes(
  operation: Operation,
  { users, recovery, clientAddress }: Pick<Services, "users" | "recovery" | "clientAddress">,
) {
  return new Hono<AppEnv>()
    .post(
      `${BASE}/public`,
      operation({
        action: "users.set_up",
        tag: TAG,
        summary: "Create the first user",
        description:
          "Requires the setup token as bearer token until the first user exists; afterwards, an administrator.",
        response: TokenData,
        errorResponses: TAKEN,
      }),
      body(UserCreate),
      async (c) => c.json(await users.setUp(c.get("actor"), c.req.valid("json"))),
    )
    .post(
      `${BASE}/signup`,
      operation({
        action: "users.signup",
        tag: TAG,
        summary: "Sign up",
        description: "Public self-registration. The new user has the role `user`.",
        response: TokenData,
        errorResponses: { ...TAKEN, 403: "Sign-up is closed. Ask an administrator for an account" },
      }),
      body(UserRegister),
      async (c) => c.json(await users.signup(c.req.valid("json"), c.get("requestId"))),
    )
    .post(
      `${BASE}/password-recovery`,
      operation({
        action: "users.recover",
        tag: TAG,
        summary: "Request a link to set a new password",
        description:
          "Sends the link to the account's e-mail address. The response does not reveal whether the account exists.",
        response: Ack,
        errorResponses: LIMITED,
      }),
      body(PasswordRecoveryRequest),
      async (c) => {
        runAfterResponse(c, await recovery.request(c.req.valid("json").username, c.get("requestId")));
        return c.json(ack("If this account exists, an e-mail with a link is on its way. Check your inbox."));
      },
    )
    .post(
      `${BASE}/reset-password`,
      operation({
        action: "users.reset",
        tag: TAG,
        summary: "Set a new password with a reset token",
        description:
          "The reset token can be used once, within 15 minutes. All earlier bearer tokens of the account become invalid.",
        response: Ack,
        errorResponses: LIMITED,
      }),
      body(PasswordReset),
      async (c) => {
        await recovery.reset(c.req.valid("json"), clientAddress(c.req.raw), c.get("requestId"));
        return c.json(ack("The new password is set."));
      },
    )
    .get(
      `${BASE}/`,
      operation({ action: "users.list", tag: TAG, summary: "List users", response: z.array(TokenData) }),
      query(Page),
      async (c) => c.json(await users.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "users.create",
        tag: TAG,
        summary: "Create a user",
        response: TokenData,
        errorResponses: TAKEN,
      }),
      body(UserCreate),
      async (c) => c.json(await users.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/me`,
      operation({ action: "users.me", tag: TAG, summary: "Get the calling user", response: TokenData }),
      (c) => c.json(users.me(c.get("actor"))),
    )
    .get(
      `${BASE}/:username`,
      operation({
        action: "users.read",
        tag: TAG,
        summary: "Get a user",
        response: TokenData,
        errorResponses: UNKNOWN,
      }),
      path(UserPath),
      async (c) => c.json(await users.read(c.get("actor"), c.req.valid("param").username)),
    )
    .put(
      `${BASE}/:username`,
      operation({
        action: "users.update",
        tag: TAG,
        summary: "Change a user's password or roles",
        description:
          "Fields that are absent or null stay unchanged. Only administrators can change roles. All earlier tokens of the user become " +
          "invalid.",
        response: TokenData,
        errorResponses: { ...UNKNOWN, 409: "No administrator would be left" },
      }),
      path(UserPath),
      body(UserUpdate),
      async (c) => c.json(await users.update(c.get("actor"), c.req.valid("param").username, c.req.valid("json"))),
    )
    .get(
      `${BASE}/:username/grants`,
      operation({
        action: "users.read_grants",
        tag: TAG,
        summary: "Get a user's grants",
        description: "Grants say which agents the user may see, command and manage. They do not limit administrators.",
        response: Grants,
        errorResponses: UNKNOWN,
      }),
      path(UserPath),
      async (c) => c.json(await users.readGrants(c.get("actor"), c.req.valid("param").username)),
    )
    .put(
      `${BASE}/:username/grants`,
      operation({
        action: "users.change_grants",
        tag: TAG,
        summary: "Replace a user's grants",
        description:
          "All earlier tokens of the user become invalid, and its sockets without access are closed within five seconds. A syntax error " +
          "in a selector and an unknown group are reported with their position.",
        response: Grants,
        errorResponses: UNKNOWN,
      }),
      path(UserPath),
      body(Grants),
      async (c) => c.json(await users.changeGrants(c.get("actor"), c.req.valid("param").username, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:username`,
      operation({
        action: "users.delete",
        tag: TAG,
        summary: "Delete a user",
        response: Ack,
        errorResponses: { ...UNKNOWN, 409: "No administrator would be left" },
      }),
      path(UserPath),
      async (c) => {
        await users.delete(c.get("actor"), c.req.valid("param").username);
        return c.json(ack("User deleted"));
      },
    );
}
