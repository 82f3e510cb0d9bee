import type { AuditActor } from "../accounts/audit.ts";
import { type Emulation, type EmulationStore, REMOVED_AT_ONCE } from "./emulation-store.ts";

/** Removes an emulation's agents, some at a time; returns how many there were. */
export async function removeAllAgents(
  store: EmulationStore,
  emulation: Pick<Emulation, "jobNumber" | "ownerId" | "owner">,
  by: AuditActor,
): Promise<number> {
  let removed = 0;
  for (let some = REMOVED_AT_ONCE; some === REMOVED_AT_ONCE; removed += some) {
    some = await store.removeSomeAgents(emulation.jobNumber);
  }
  // Only now: if this got no further, the agents would stay for ever.
  await store.markRemoved(emulation, removed, by);
  return removed;
}

/** Removes the agents of emulations whose retention has ended. */
export interface EmulationRetention {
  /** Works on a few emulations; the next call goes on with the others. */
  sweep(): Promise<void>;
}

/** Of at most 10,000 agents each. */
const REMOVED_PER_SWEEP = 5;
const RETENTION: AuditActor = { kind: "service", name: "retention", requestId: "" };

export function createEmulationRetention(store: EmulationStore, retentionMs: number): EmulationRetention {
  let hasAdopted = false;
  return {
    async sweep() {
      if (!hasAdopted) await store.adopt();
      hasAdopted = true;
      await store.recordEnded();
      for (const emulation of await store.endedFor(retentionMs, REMOVED_PER_SWEEP)) {
        await removeAllAgents(store, emulation, RETENTION);
      }
    },
  };
}
