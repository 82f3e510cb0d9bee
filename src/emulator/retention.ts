import type { AuditActor } from "../accounts/audit.ts";
import { type Emulation, type EmulationStore, REMOVAL_BATCH_SIZE } from "./emulation-store.ts";

/** Removes all agents of an emulation, in batches, and returns their number. */
export async function removeAllAgents(
  store: EmulationStore,
  emulation: Pick<Emulation, "jobNumber" | "ownerId" | "owner">,
  actor: AuditActor,
): Promise<number> {
  let removed = 0;
  for (let batch = REMOVAL_BATCH_SIZE; batch === REMOVAL_BATCH_SIZE; removed += batch) {
    batch = await store.removeSomeAgents(emulation.jobNumber);
  }
  // Marks the emulation last: if the removal stops earlier, the next sweep still finds the remaining agents.
  await store.markRemoved(emulation, removed, actor);
  return removed;
}

/** Removes the agents of emulations whose retention has ended. */
export interface EmulationRetention {
  /** Handles a few emulations. The next call continues with the others. */
  sweep(): Promise<void>;
}

/** Emulations per sweep. Each has at most 10,000 agents. */
const MAX_PER_SWEEP = 5;
const RETENTION: AuditActor = { kind: "service", name: "retention", requestId: "" };

export function createEmulationRetention(store: EmulationStore, retentionMs: number): EmulationRetention {
  let hasInsertedMissing = false;
  return {
    async sweep() {
      if (!hasInsertedMissing) await store.insertMissing();
      hasInsertedMissing = true;
      await store.recordEnded();
      for (const emulation of await store.endedFor(retentionMs, MAX_PER_SWEEP)) {
        await removeAllAgents(store, emulation, RETENTION);
      }
    },
  };
}
