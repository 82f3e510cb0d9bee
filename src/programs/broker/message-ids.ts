import type { Client } from "aedes";

/** MQTT message ids have 16 bits and are never zero. */
const MAX_MESSAGE_ID = 65_535;

/**
 * Lets a client skip the message ids in use, and continue the sequence of its earlier connections.
 *
 * aedes starts each connection at a random message id, while unacknowledged messages of earlier connections keep theirs. Sooner or later
 * two messages in flight have the same id. The acknowledgement of one then removes the other, which is lost if the connection closes
 * before it arrives.
 */
export function assignUniqueMessageIds(
  client: Client,
  ids: { next: number; inUse: { has(id: number): boolean } },
): void {
  if (!("_nextId" in client)) throw new Error("This version of aedes assigns message ids differently");
  Object.defineProperty(client, "_nextId", {
    get: () => {
      for (let i = 0; i < MAX_MESSAGE_ID && ids.inUse.has(ids.next); i++) ids.next = (ids.next % MAX_MESSAGE_ID) + 1;
      return ids.next;
    },
    set: (next: number) => {
      ids.next = next;
    },
  });
}

/**
 * Disables the duplicate filter of aedes for the messages of some brokers. The filter drops a message if a later one was delivered first.
 * (Without it, a client with overlapping subscriptions gets one copy for each, as MQTT allows.)
 */
export function disableDuplicateFilter(client: Client, brokerIds: readonly string[]): void {
  const { duplicates } = client as Client & { duplicates?: object };
  if (duplicates === undefined) throw new Error("This version of aedes detects duplicates differently");
  for (const id of brokerIds) Object.defineProperty(duplicates, id, { get: () => 0, set: () => {} });
}
