import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { Actor } from "../auth/identity.ts";
import { authorize } from "../auth/permissions.ts";
import { AuditEntry, type AuditQuery } from "../schemas/audit.ts";
import { type Database, query } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";

/** The audit trail: who did what to which account or access point. */

/** Who did it: a caller, a command at the console, an anonymous caller (sign-up, forgotten password), or the service itself. */
export interface AuditActor {
  kind: Actor["kind"] | "console" | "anyone" | "service";
  name: string;
  requestId: string;
}

export const anonymous = (requestId: string): AuditActor => ({ kind: "anyone", name: "", requestId });
export const SERVICE: AuditActor = { kind: "service", name: "", requestId: "" };

/** Returns the author as the trail names it. */
export const actorText = ({ kind, name }: AuditActor): string => (name === "" ? kind : `${kind}:${name}`);

export const SEND_COMMAND = "send command";

/** How a command or an emulation can end, each an action of the trail. */
const ENDS = ["done", "failed", "expired", "cancelled"] as const;
export type End = (typeof ENDS)[number];
export const endAction = (what: "command" | "emulation", end: End): string => `${what} ${end}`;

/** Actions that change no account: sessions and connections of the accounts that they name go on. */
export const CHANGES_NO_ACCOUNT: string[] = [
  SEND_COMMAND,
  ...ENDS.flatMap((end) => [endAction("command", end), endAction("emulation", end)]),
];

/**
 * The statement that writes an entry down, for the same batch as the change itself and right behind it: it does so only if that
 * statement changed something.
 */
export function auditIfChanged(
  database: Database,
  by: AuditActor,
  action: string,
  object: string | SQL,
  /** JSON text. */
  detail: string | SQL | null = null,
) {
  return database.run(
    sql`insert into ${audit} (at, request_id, actor, action, object, detail)
        select ${Date.now()}, ${by.requestId}, ${actorText(by)}, ${action}, ${object}, ${detail} where changes() > 0`,
  );
}

export interface AuditTrail {
  list(actor: Actor, query: AuditQuery): Promise<AuditEntry[]>;
}

export function createAuditTrail(database: Database): AuditTrail {
  return {
    async list(actor, { actor: author, object, before, limit }) {
      authorize(actor, "audit.list");
      const rows = await query(
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
