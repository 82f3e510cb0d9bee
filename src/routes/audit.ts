import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { query } from "../http/validation.ts";
import { AuditEntry, AuditQuery } from "../schemas/accounts/audit.ts";
import type { Services } from "../services.ts";

export function auditRoutes(operation: Operation, { auditTrail }: Pick<Services, "auditTrail">) {
  return new Hono<AppEnv>().get(
    "/api/v1/audit/",
    operation({
      action: "audit.list",
      tag: "Audit",
      summary: "List the audit trail",
      description:
        "Lists changes of accounts, commands with their outcomes, and emulations, newest first. To get the next page, set `before` to the `id` " +
        "of the last entry.",
      response: z.array(AuditEntry),
    }),
    query(AuditQuery),
    async (c) => c.json(await auditTrail.list(c.get("actor"), c.req.valid("query"))),
  );
}
