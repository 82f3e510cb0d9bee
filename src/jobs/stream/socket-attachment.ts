import * as z from "zod";
import { StreamHandshake } from "./handshake.ts";
import { Unacknowledged } from "./unacknowledged.ts";

/** What is known of a socket. In its attachment, of which the platform allows 2 KB, and which outlives the object in memory. */
const SocketAttachment = z.object({
  ...StreamHandshake.pick({ jobNumber: true, reader: true, form: true }).shape,
  /** Messages of which a bare socket gets nothing count as sent to it. */
  sentUpTo: z.int(),
  outstanding: Unacknowledged,
  hasAcknowledged: z.boolean(),
  /** When the reader's access was last asked for and found to be good. */
  checkedMs: z.number(),
});
export type SocketAttachment = z.output<typeof SocketAttachment>;

/** Read when needed, and then remembered for as long as the object is awake. */
export class SocketAttachments {
  readonly #known = new WeakMap<WebSocket, SocketAttachment>();

  of(socket: WebSocket): SocketAttachment {
    let state = this.#known.get(socket);
    if (state === undefined) {
      state = SocketAttachment.parse(socket.deserializeAttachment());
      this.#known.set(socket, state);
    }
    return state;
  }

  save(socket: WebSocket, state: SocketAttachment): void {
    this.#known.set(socket, state);
    socket.serializeAttachment(state);
  }
}
