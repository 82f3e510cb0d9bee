import { useState } from "preact/hooks";
import type { AuditEntry } from "../../../../schemas/audit.ts";
import { auditTrail } from "../../../api/operations.ts";
import { type Action, useAction } from "../../../lib/action.ts";
import { type Loaded, useLoaded } from "../../../lib/load.ts";

const PAGE = 50;
/** Those who go far back leave the newest behind, so that the page does not grow without end. */
const KEPT = 500;

export interface Trail {
  /** The newest, and a way back to them. */
  newest: Loaded<AuditEntry[]>;
  entries: readonly AuditEntry[];
  older: Action<[]>;
  hasOlder: boolean;
  /** Whether newer ones have made room for older ones. */
  isNewestGone: boolean;
}

/** The audit trail from its newest entry, page by page into the past. */
export function useTrail(actor: string | undefined, object: string | undefined): Trail {
  const newest = useLoaded((signal) => auditTrail({ actor, object, limit: PAGE }, signal), [actor, object]);
  const [further, setFurther] = useState<{ of: unknown; entries: readonly AuditEntry[]; hasOlder: boolean }>();
  // What was added to an earlier answer goes with it.
  const { entries, hasOlder } =
    further !== undefined && further.of === newest.data
      ? further
      : { entries: newest.data ?? [], hasOlder: newest.data?.length === PAGE };
  const older = useAction(async () => {
    const page = await auditTrail({ actor, object, before: entries.at(-1)?.id, limit: PAGE });
    setFurther({ of: newest.data, entries: [...entries, ...page].slice(-KEPT), hasOlder: page.length === PAGE });
  });
  return { newest, entries, older, hasOlder, isNewestGone: entries[0]?.id !== newest.data?.[0]?.id };
}
