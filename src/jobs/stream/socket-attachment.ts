import * as z from "zod";
import { Opening } from "./handshake.ts";
import { Outstanding } from "./unacknowledged.ts";

/** What is known of a socket. In its attachment, of which the platform allows 2 KB, and which outlives the object in memory. */
const SocketState = z.object({
  ...Opening.pick({ jobNumber: true, reader: true, form: true }).shape,
  /** Messages of which a bare socket gets nothing count as sent to it. */
  sentUpTo: z.int(),
  outstanding: Outstanding,
  hasAcknowledged: z.boolean(),
  /** When the reader's access was last asked for and found to be good. */
  checkedMs: z.number(),
});
export type SocketState = z.output<typeof SocketState>;

/** Read when needed, and then remembered for as long as the object is awake. */
export class SocketStates {
  readonly #known = new WeakMap<WebSocket, SocketState>();

  of(socket: WebSocket): SocketState {
    let state = this.#known.get(socket);
    if (state === undefined) {
      state = SocketState.parse(socket.deserializeAttachment());
      this.#known.set(socket, state);
    }
    return state;
  }

  save(socket: WebSocket, state: SocketState): void {
    this.#known.set(socket, state);
    socket.serializeAttachment(state);
  }
}
