import { Hono } from "hono";
import * as z from "zod";
import type { AppEnv } from "../http/context.ts";
import type { Operation } from "../http/operation.ts";
import { query } from "../http/validation.ts";
import { AuditEntry, AuditQuery } from "../schemas/audit.ts";
import type { Services } from "../services.ts";

export function auditRoutes(operation: Operation, { auditTrail }: Pick<Services, "auditTrail">) {
  return new Hono<AppEnv>().get(
    "/api/v1/audit/",
    operation({
      action: "audit.list",
      tag: "Audit",
      summary: "Who did what to which account or access point",
      description:
        "Changes of accounts, commands and how they ended, emulations. Newest first. The `id` of the last entry as `before` gives the next page.",
      answer: z.array(AuditEntry),
    }),
    query(AuditQuery),
    async (c) => c.json(await auditTrail.list(c.get("actor"), c.req.valid("query"))),
  );
}
