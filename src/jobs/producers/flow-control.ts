/** Backpressure: the service produces a job's messages no faster than readers acknowledge them. */

export interface FlowState {
  /** The open sockets. */
  sockets: readonly { unacknowledgedBytes: number; hasAcknowledged: boolean }[];
  /** What the buffer can store before it drops or rejects messages. */
  room: { messages: number; bytes: number };
}

/** Produce the next message after a pause, or wait until a socket connects, closes or acknowledges. */
export type Throttle = { go: true; pauseMs: number } | { go: false };

const MIB = 1024 * 1024;
const MAX_UNACKNOWLEDGED_BYTES = MIB;
const PAUSE_MS_PER_MIB = 250;

/**
 * Decides whether a producer may produce its next message.
 *
 * @param bytes the approximate size of the next message
 * @param maxSocketBytes a socket with more unacknowledged bytes is closed
 */
export function throttle({ sockets, room }: FlowState, bytes: number, maxSocketBytes: number): Throttle {
  if (sockets.length === 0) return room.messages > 0 && room.bytes >= bytes ? { go: true, pauseMs: 0 } : { go: false };
  const fewest = (of: FlowState["sockets"]) => Math.min(...of.map(({ unacknowledgedBytes }) => unacknowledgedBytes));
  const acknowledging = sockets.filter(({ hasAcknowledged }) => hasAcknowledged);
  // A socket that does not acknowledge is closed at its limit, and does not delay those that do.
  if (acknowledging.length > 0) {
    return fewest(acknowledging) < MAX_UNACKNOWLEDGED_BYTES ? { go: true, pauseMs: 0 } : { go: false };
  }
  // No socket acknowledges: use a rate that most readers can follow, and stop before the limit closes the last socket.
  return fewest(sockets) + bytes <= maxSocketBytes
    ? { go: true, pauseMs: Math.ceil((PAUSE_MS_PER_MIB * bytes) / MIB) }
    : { go: false };
}
