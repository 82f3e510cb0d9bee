import { DiskPersistence } from "./disk-persistence.ts";
import { DiskSessions } from "./disk-sessions.ts";
import { openSelfHealingLevel } from "./self-healing-level.ts";
import { type BrokerStore, SESSION_EXPIRY_MS, type StoreEvents } from "./store.ts";

/**
 * Opens the store of a single broker. Acknowledged QoS 1 and 2 messages are on disk and survive a kill of the broker. They may not survive a
 * power cut: the operating system may still hold them in memory.
 */
export async function openDiskStore(folder: string, events: StoreEvents): Promise<BrokerStore> {
  const { onBroken, onHealed, canReceive } = events;
  const level = await openSelfHealingLevel(folder, {
    onBroken: ({ message }) => onBroken(`Cannot write to ${folder}: ${message}`),
    onHealed: () => onHealed(`Writing to ${folder} works again`),
  });
  // Queued messages are delivered in the order of broker ids.
  const id = `${new Date().toISOString()}-${process.pid}`;
  const persistence = new DiskPersistence(level, id, canReceive);
  const sessions = new DiskSessions(level, persistence, events);
  return {
    id,
    persistence,
    sessions,
    async start() {
      await sessions.load();
      setInterval(() => void sessions.removeExpired().catch(() => {}), SESSION_EXPIRY_MS).unref();
    },
    filterOf: (_client, filter) => filter,
    forwards: () => true,
  };
}
