import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { body, path, query } from "../http/validation.ts";
import {
  EnrolmentToken,
  EnrolmentTokenCreate,
  EnrolmentTokenPath,
  NewEnrolmentToken,
} from "../schemas/enrolment-token.ts";
import { Ack, ack, Page } from "../schemas/primitives.ts";
import type { Services } from "../services.ts";

const BASE = "/api/v1/enrolment_tokens";
const TAG = "Enrolment tokens";

export function enrolmentTokensRoutes(operation: Operation, { enrolmentTokens }: Pick<Services, "enrolmentTokens">) {
  return new Hono<AppEnv>()
    .get(
      `${BASE}/`,
      operation({
        action: "enrolment_tokens.list",
        tag: TAG,
        summary: "List enrolment tokens",
        description:
          "Returns the token of the settings first, then the newest. A manager gets the tokens whose labels its grants include. The last " +
          "1,000 revoked tokens stay in the list.",
        response: z.array(EnrolmentToken),
      }),
      query(Page),
      async (c) => c.json(await enrolmentTokens.list(c.get("actor"), c.req.valid("query"))),
    )
    .post(
      `${BASE}/`,
      operation({
        action: "enrolment_tokens.create",
        tag: TAG,
        summary: "Create an enrolment token",
        description:
          "Access points register themselves with it (`POST /api/v1/agents/public`) and get its labels. Only this response contains the " +
          "token. A manager can only use labels that its grants include.",
        response: NewEnrolmentToken,
        errorResponses: { 409: "There are 1,000 tokens that are not revoked" },
      }),
      body(EnrolmentTokenCreate),
      async (c) => c.json(await enrolmentTokens.create(c.get("actor"), c.req.valid("json"))),
    )
    .delete(
      `${BASE}/:id`,
      operation({
        action: "enrolment_tokens.revoke",
        tag: TAG,
        summary: "Revoke an enrolment token",
        description: "No access point can register with it any more. Access points that it has registered stay.",
        response: Ack,
        errorResponses: {
          404: "The token does not exist",
          409: "The token is in the settings and cannot be revoked",
        },
      }),
      path(EnrolmentTokenPath),
      async (c) => {
        await enrolmentTokens.revoke(c.get("actor"), c.req.valid("param").id);
        return c.json(ack("Enrolment token revoked"));
      },
    );
}
