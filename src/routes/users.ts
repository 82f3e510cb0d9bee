import { Hono } from "hono";
import * as z from "zod";
import { runAfterResponse } from "../http/after-response.ts";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
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
const TAKEN = { 409: "The name is taken" };
const UNKNOWN = { 404: "There is no such user" };
const LIMITED = { 429: "Too many tries; Retry-After says when to try again" };

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
        summary: "Make the first user",
        description: "With the setup token as bearer, while there is no user at all; later for administrators.",
        answer: TokenData,
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
        description: "Public self-registration. The new user gets the standard role `user`.",
        answer: TokenData,
        errorResponses: { ...TAKEN, 403: "Sign-up is closed; administrators create the accounts" },
      }),
      body(UserRegister),
      async (c) => c.json(await users.signup(c.req.valid("json"), c.get("requestId"))),
    )
    .post(
      `${BASE}/password-recovery`,
      operation({
        action: "users.recover",
        tag: TAG,
        summary: "Ask for a link to set a new password",
        description:
          "The link goes to the account's e-mail address. The answer is the same whether there is such an account or not.",
        answer: Ack,
        errorResponses: LIMITED,
      }),
      body(PasswordRecoveryRequest),
      async (c) => {
        runAfterResponse(c, await recovery.request(c.req.valid("json").username, c.get("requestId")));
        return c.json(ack("If there is such an account, a message with a link is on its way to it."));
      },
    )
    .post(
      `${BASE}/reset-password`,
      operation({
        action: "users.reset",
        tag: TAG,
        summary: "Set a new password with a reset token",
        description: "The token works once and for 15 minutes. All earlier tokens of the account end.",
        answer: Ack,
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
      operation({ action: "users.list", tag: TAG, summary: "All users", answer: z.array(TokenData) }),
      query(Page),
      async (c) => c.json(await users.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "users.create",
        tag: TAG,
        summary: "Create a user",
        answer: TokenData,
        errorResponses: TAKEN,
      }),
      body(UserCreate),
      async (c) => c.json(await users.create(c.get("actor"), c.req.valid("json"))),
    )
    .get(
      `${BASE}/me`,
      operation({ action: "users.me", tag: TAG, summary: "The calling user", answer: TokenData }),
      (c) => c.json(users.me(c.get("actor"))),
    )
    .get(
      `${BASE}/:username`,
      operation({ action: "users.read", tag: TAG, summary: "One user", answer: TokenData, errorResponses: UNKNOWN }),
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
          "What is absent or null stays. Only administrators change roles. All earlier tokens of the user end.",
        answer: TokenData,
        errorResponses: { ...UNKNOWN, 409: "It would leave no administrator" },
      }),
      path(UserPath),
      body(UserUpdate),
      async (c) => c.json(await users.update(c.get("actor"), c.req.valid("param").username, c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:username`,
      operation({
        action: "users.delete",
        tag: TAG,
        summary: "Delete a user",
        answer: Ack,
        errorResponses: { ...UNKNOWN, 409: "It would leave no administrator" },
      }),
      path(UserPath),
      async (c) => {
        await users.delete(c.get("actor"), c.req.valid("param").username);
        return c.json(ack("User deleted"));
      },
    );
}
