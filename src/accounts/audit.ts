import { and, asc, desc, eq, inArray, lt, type SQL, sql } from "drizzle-orm";
import * as z from "zod";
import type { Actor } from "../auth/identity.ts";
import { authorize } from "../auth/permissions.ts";
import { describeError, log } from "../lib/log.ts";
import { AuditEntry, type AuditQuery } from "../schemas/accounts/audit.ts";
import { type Database, query } from "../storage/libsql.ts";
import { audit } from "./account-tables.ts";

/** The audit trail: every change of an account and every command, with its actor and its request. */

/**
 * The author of an entry: a caller, an administrator at the console, an anonymous caller (`anyone`: sign-up, forgotten password), or the
 * service itself.
 */
export interface AuditActor {
  kind: Actor["kind"] | "console" | "anyone" | "service";
  name: string;
  requestId: string;
}

export const anonymous = (requestId: string): AuditActor => ({ kind: "anyone", name: "", requestId });
export const SERVICE: AuditActor = { kind: "service", name: "", requestId: "" };

/** Returns the actor in the form that the trail stores. */
export const actorText = ({ kind, name }: AuditActor): string => (name === "" ? kind : `${kind}:${name}`);

export const SEND_COMMAND = "send command";

/** Terminal states of a command or an emulation. The trail records each as an action. */
const ENDS = ["done", "failed", "expired", "cancelled"] as const;
export type End = (typeof ENDS)[number];
export const endAction = (what: "command" | "emulation", end: End): string => `${what} ${end}`;

/** Many logins of one account, or from one address, have failed within a minute. */
export const FAILED_LOGINS = "repeated failed logins";

/** Actions that change no account. They do not invalidate tokens and connections of the accounts that they name. */
export const CHANGES_NO_ACCOUNT: string[] = [
  SEND_COMMAND,
  FAILED_LOGINS,
  ...ENDS.flatMap((end) => [endAction("command", end), endAction("emulation", end)]),
];

/**
 * Returns the statement that inserts an entry. It must directly follow the change in the same batch: it inserts nothing if the
 * preceding statement changed no row.
 */
export function auditIfChanged(
  database: Database,
  by: AuditActor,
  action: string,
  object: string | SQL,
  /** As JSON. */
  detail: string | SQL | null = null,
) {
  return auditIf(database, sql`changes() > 0`, by, action, object, detail);
}

/** Like `auditIfChanged`, with a condition of its own. */
export function auditIf(
  database: Database,
  condition: SQL,
  by: AuditActor,
  action: string,
  object: string | SQL,
  detail: string | SQL | null = null,
) {
  return database.run(
    sql`insert into ${audit} (at, request_id, actor, action, object, detail)
        select ${Date.now()}, ${by.requestId}, ${actorText(by)}, ${action}, ${object}, ${detail} where ${condition}`,
  );
}

export interface AuditTrail {
  list(actor: Actor, query: AuditQuery): Promise<AuditEntry[]>;
}

export function createAuditTrail(database: Database): AuditTrail {
  return {
    async list(caller, { actor, object, before, limit }) {
      authorize(caller, "audit.list");
      const rows = await query(
        database
          .select()
          .from(audit)
          .where(
            and(
              actor === undefined ? undefined : eq(audit.actor, actor),
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

/** Maximum number of entries that one call removes. */
const PRUNED_AT_ONCE = 500;

/**
 * Removes entries that are older than `maxAgeMs`. Callers run it when new entries arrive, so it needs no timer. Ids grow with time, so
 * it checks only the entries with the lowest ids. Never throws.
 */
export async function pruneAuditTrail(database: Database, maxAgeMs: number): Promise<void> {
  const oldest = database.select({ id: audit.id }).from(audit).orderBy(asc(audit.id)).limit(PRUNED_AT_ONCE);
  try {
    await database.delete(audit).where(and(inArray(audit.id, oldest), lt(audit.at, new Date(Date.now() - maxAgeMs))));
  } catch (error) {
    // The next call removes the entries.
    log.warn("audit trail prune failed", { error: describeError(error) });
  }
}
