import * as z from "zod";
import { LoginType } from "../../auth/tokens.ts";

export const TokenQuery = z.object({ login_type: LoginType.describe("Kind of account that logs in.") });

export const LoginForm = z
  .object({
    grant_type: z
      .string()
      .regex(/^password$/)
      .optional(),
    username: z
      .string()
      .max(256)
      .describe("E-mail address of a user, `ap_id` of an agent, `app_name` of a third-party app."),
    password: z.string().max(256).describe("Password, or `api_key` of a third-party app."),
    scope: z
      .string()
      .max(1000)
      .default("")
      .describe("Requested scopes, separated by spaces. If empty, the token has all scopes of the account."),
    client_id: z.string().optional(),
    client_secret: z.string().optional(),
  })
  .meta({ id: "LoginForm" });
export type LoginForm = z.output<typeof LoginForm>;

export const Token = z
  .object({
    access_token: z.string(),
    token_type: z.literal("bearer"),
    expires_in: z.int().describe("Seconds until the token expires."),
  })
  .meta({ id: "Token" });
export type Token = z.output<typeof Token>;
