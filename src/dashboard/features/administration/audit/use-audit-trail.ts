import { useState } from "preact/hooks";
import type { AuditEntry } from "../../../../schemas/accounts/audit.ts";
import { auditTrail } from "../../../api/operations.ts";
import { type Action, useAction } from "../../../lib/action.ts";
import { type Loaded, useLoaded } from "../../../lib/load.ts";

const PAGE_SIZE = 50;
/** Older pages replace the newest entries above this number, so that the page does not grow without limit. */
const MAX_ENTRIES = 500;

export interface AuditTrail {
  /** The first page. Its `refresh` returns to the newest entries. */
  newest: Loaded<AuditEntry[]>;
  entries: readonly AuditEntry[];
  older: Action<[]>;
  hasOlder: boolean;
  /** Whether older entries have replaced the newest. */
  isNewestHidden: boolean;
}

/** Loads the audit trail page by page, from the newest entry to older ones. */
export function useAuditTrail(actor: string | undefined, object: string | undefined): AuditTrail {
  const newest = useLoaded((signal) => auditTrail({ actor, object, limit: PAGE_SIZE }, signal), [actor, object]);
  const [extended, setExtended] = useState<{ first: unknown; entries: readonly AuditEntry[]; hasOlder: boolean }>();
  // A reload of the first page discards the older pages.
  const { entries, hasOlder } =
    extended !== undefined && extended.first === newest.data
      ? extended
      : { entries: newest.data ?? [], hasOlder: newest.data?.length === PAGE_SIZE };
  const older = useAction(async () => {
    const page = await auditTrail({ actor, object, before: entries.at(-1)?.id, limit: PAGE_SIZE });
    setExtended({
      first: newest.data,
      entries: [...entries, ...page].slice(-MAX_ENTRIES),
      hasOlder: page.length === PAGE_SIZE,
    });
  });
  return { newest, entries, older, hasOlder, isNewestHidden: entries[0]?.id !== newest.data?.[0]?.id };
}
