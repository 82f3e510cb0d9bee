import { Hono } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body } from "../http/validation.ts";
import { TokenData, UserRegister } from "../schemas/user.ts";
import type { Services } from "../services.ts";

export function usersRoutes(operation: Operation, { users }: Pick<Services, "users">) {
  return new Hono<AppEnv>()
    .post(
      "/api/v1/users/signup",
      operation({
        action: "users.signup",
        tag: "Users",
        summary: "Sign up",
        description: "Public self-registration. The new user gets the standard role `user`.",
        answer: TokenData,
        otherAnswers: { 409: "The name is taken" },
      }),
      body(UserRegister),
      async (c) => c.json(await users.signup(c.req.valid("json"))),
    )
    .get(
      "/api/v1/users/me",
      operation({ action: "users.me", tag: "Users", summary: "The calling user", answer: TokenData }),
      (c) => c.json(users.me(c.get("actor"))),
    );
}
