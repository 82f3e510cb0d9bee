import * as z from "zod";
import { StreamHandshake } from "./handshake.ts";

/**
 * Counts the bytes that a socket was sent and has not acknowledged. The messages themselves may be deleted by then, because another
 * reader acknowledged them. So a few checkpoints hold the running total; all of them must fit in the attachment. Between two checkpoints
 * the count is too low, in the reader's favour. Stored in attachments: field names must not change.
 */
const Unacknowledged = z.object({
  sentBytes: z.number(),
  acknowledgedBytes: z.number(),
  /** The total at the last checkpoint. */
  notedBytes: z.number(),
  /** Checkpoints that are not acknowledged yet: a message's number, and the total including it. */
  notes: z.array(z.tuple([z.int(), z.number()])),
});
export type Unacknowledged = z.output<typeof Unacknowledged>;

const MAX_CHECKPOINTS = 32;

export const nothingUnacknowledged = (): Unacknowledged => ({
  sentBytes: 0,
  acknowledgedBytes: 0,
  notedBytes: 0,
  notes: [],
});

export const unacknowledgedBytes = ({ sentBytes, acknowledgedBytes }: Unacknowledged): number =>
  sentBytes - acknowledgedBytes;

/** @param maxBytes the socket's limit, which is divided evenly between the checkpoints */
export function recordSent(unacknowledged: Unacknowledged, seq: number, bytes: number, maxBytes: number): void {
  unacknowledged.sentBytes += bytes;
  if (unacknowledged.sentBytes - unacknowledged.notedBytes < maxBytes / MAX_CHECKPOINTS) return;
  unacknowledged.notes.push([seq, unacknowledged.sentBytes]);
  unacknowledged.notedBytes = unacknowledged.sentBytes;
}

export function recordAcknowledged(unacknowledged: Unacknowledged, upTo: number): void {
  unacknowledged.notes = unacknowledged.notes.filter(([seq]) => seq >= upTo);
  const [, acknowledged] = unacknowledged.notes[0] ?? [0, unacknowledged.sentBytes];
  unacknowledged.acknowledgedBytes = Math.max(unacknowledged.acknowledgedBytes, acknowledged);
}

/** A socket's state. The platform keeps it while the object sleeps, and allows 2 KB. */
const SocketAttachment = z.object({
  ...StreamHandshake.pick({ jobNumber: true, reader: true, form: true }).shape,
  /** Number of the last message. Includes messages that a bare socket does not get. */
  sentUpTo: z.int(),
  outstanding: Unacknowledged,
  hasAcknowledged: z.boolean(),
  /** When the last successful check of the reader's access began. */
  checkedMs: z.number(),
});
export type SocketAttachment = z.output<typeof SocketAttachment>;

/** Reads attachments when they are needed, and caches them while the object is awake. */
export class SocketAttachments {
  readonly #cached = new WeakMap<WebSocket, SocketAttachment>();

  of(socket: WebSocket): SocketAttachment {
    let attachment = this.#cached.get(socket);
    if (attachment === undefined) {
      attachment = SocketAttachment.parse(socket.deserializeAttachment());
      this.#cached.set(socket, attachment);
    }
    return attachment;
  }

  save(socket: WebSocket, attachment: SocketAttachment): void {
    this.#cached.set(socket, attachment);
    socket.serializeAttachment(attachment);
  }
}
