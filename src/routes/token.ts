import { Hono } from "hono";
import { type AppEnv, runAfterResponse } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { form, query } from "../http/validation.ts";
import { LoginForm, Token, TokenQuery } from "../schemas/accounts/token.ts";
import type { Services } from "../services.ts";

export function tokenRoutes(operation: Operation, { login, clientAddress }: Pick<Services, "login" | "clientAddress">) {
  return new Hono<AppEnv>().post(
    "/api/v1/token/",
    operation({
      action: "token.create",
      tag: "Token",
      summary: "Log in",
      description: "Issues a bearer token for the credentials of a user, an agent or a third-party app.",
      response: Token,
      errorResponses: {
        401: "Incorrect username or password",
        429: "Too many failed logins with this name or from this address. Retry after the time in Retry-After",
      },
    }),
    query(TokenQuery),
    form(LoginForm),
    async (c) => {
      const loginType = c.req.valid("query").login_type;
      const credentials = c.req.valid("form");
      const { token, afterResponse } = await login(loginType, credentials, {
        requestId: c.get("requestId"),
        address: clientAddress(c.req.raw),
      });
      c.set("loggedIn", `${loginType === "third_party_app" ? "app" : loginType}:${credentials.username.trim()}`);
      runAfterResponse(c, afterResponse);
      return c.json(token);
    },
  );
}
