import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import { type Actor, allow } from "../auth/permissions.ts";
import { AuditEntry, type AuditQuery } from "../schemas/audit.ts";
import { type Database, reach } from "./database.ts";
import { audit } from "./tables.ts";

/** The audit trail: who did what to which account. */

/** Who did it: a caller, a command at the console, the service itself, or a client without an account (a sign-up, a lost password). */
export interface Author {
  kind: Actor["kind"] | "console" | "anyone" | "service";
  name: string;
  requestId: string;
}

export const anyone = (requestId: string): Author => ({ kind: "anyone", name: "", requestId });

/**
 * The statement that writes an entry down, for the same batch as the change itself and right behind it: it does so only if that
 * statement changed something.
 */
export function auditIfChanged(database: Database, by: Author, action: string, object: string | SQL) {
  const author = by.kind === "anyone" ? "anyone" : `${by.kind}:${by.name}`;
  return database.run(
    sql`insert into ${audit} (at, request_id, actor, action, object)
        select ${Date.now()}, ${by.requestId}, ${author}, ${action}, ${object} where changes() > 0`,
  );
}

export interface AuditTrail {
  list(actor: Actor, query: AuditQuery): Promise<AuditEntry[]>;
}

export function createAuditTrail(database: Database): AuditTrail {
  return {
    async list(actor, { actor: author, object, before, limit }) {
      allow(actor, "audit.list");
      const rows = await reach(
        database
          .select()
          .from(audit)
          .where(
            and(
              author === undefined ? undefined : eq(audit.actor, author),
              object === undefined ? undefined : eq(audit.object, object),
              before === undefined ? undefined : lt(audit.id, before),
            ),
          )
          .orderBy(desc(audit.id))
          .limit(limit),
      );
      return z
        .array(AuditEntry)
        .parse(rows.map(({ at, requestId, ...row }) => ({ ...row, at: at.toISOString(), request_id: requestId })));
    },
  };
}
