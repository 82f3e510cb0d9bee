/** How fast the service itself may produce messages for a job: no faster than they are read. */

export interface FlowState {
  /** The sockets that are open. */
  sockets: readonly { unacknowledgedBytes: number; hasAcknowledged: boolean }[];
  /** What the buffer can take before anything unread has to go. */
  room: { messages: number; bytes: number };
}

/** Produce the next message at once, after a while, or not until the flow has changed. */
export type Throttle = { go: true; pauseMs: number } | { go: false };

const MIB = 1024 * 1024;
const MAX_UNACKNOWLEDGED_BYTES = MIB;
const PAUSE_MS_PER_MIB = 250;

/**
 * @param bytes of the next message, more or less
 * @param maxSocketBytes unacknowledged, beyond which a socket is closed
 */
export function throttle({ sockets, room }: FlowState, bytes: number, maxSocketBytes: number): Throttle {
  if (sockets.length === 0) return room.messages > 0 && room.bytes >= bytes ? { go: true, pauseMs: 0 } : { go: false };
  const least = (of: FlowState["sockets"]) => Math.min(...of.map(({ unacknowledgedBytes }) => unacknowledgedBytes));
  const acknowledging = sockets.filter(({ hasAcknowledged }) => hasAcknowledged);
  // Whoever does not acknowledge is closed at the bound, and does not hold up those who do.
  if (acknowledging.length > 0) {
    return least(acknowledging) < MAX_UNACKNOWLEDGED_BYTES ? { go: true, pauseMs: 0 } : { go: false };
  }
  // Nobody says how far they have come: a rate that most can follow, and an end before the bound closes the last of them.
  return least(sockets) + bytes <= maxSocketBytes
    ? { go: true, pauseMs: Math.ceil((PAUSE_MS_PER_MIB * bytes) / MIB) }
    : { go: false };
}
