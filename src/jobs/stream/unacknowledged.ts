import * as z from "zod";

/**
 * How many bytes a socket was sent and has not acknowledged. The messages themselves may be gone by then, another reader having
 * acknowledged them, so the sums are noted at a few of them: all of it must fit in a socket's attachment. Between two notes the
 * count is in the reader's favour.
 */
export const Unacknowledged = z.object({
  sentBytes: z.number(),
  acknowledgedBytes: z.number(),
  /** How much had been sent at the last note. */
  notedBytes: z.number(),
  /** A message's number, and how much had been sent with it; those only that are not acknowledged yet. */
  notes: z.array(z.tuple([z.int(), z.number()])),
});
export type Unacknowledged = z.output<typeof Unacknowledged>;

/** As many notes as there are steps up to the bound of a socket. */
const NOTES = 32;

export const noneUnacknowledged = (): Unacknowledged => ({
  sentBytes: 0,
  acknowledgedBytes: 0,
  notedBytes: 0,
  notes: [],
});

export const unacknowledgedBytes = ({ sentBytes, acknowledgedBytes }: Unacknowledged): number =>
  sentBytes - acknowledgedBytes;

export function recordSent(outstanding: Unacknowledged, seq: number, bytes: number, maxBytes: number): void {
  outstanding.sentBytes += bytes;
  if (outstanding.sentBytes - outstanding.notedBytes < maxBytes / NOTES) return;
  outstanding.notes.push([seq, outstanding.sentBytes]);
  outstanding.notedBytes = outstanding.sentBytes;
}

export function recordAcknowledged(outstanding: Unacknowledged, upTo: number): void {
  outstanding.notes = outstanding.notes.filter(([seq]) => seq >= upTo);
  const [, acknowledged] = outstanding.notes[0] ?? [0, outstanding.sentBytes];
  outstanding.acknowledgedBytes = Math.max(outstanding.acknowledgedBytes, acknowledged);
}
