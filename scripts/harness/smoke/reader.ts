import { EventEmitter, on } from "node:events";
import { UserError } from "../../../src/programs/shared/cli.ts";
import type { Api } from "../api.ts";
import { acknowledge, openSocket, streamPath } from "../job-socket.ts";

/** A reader of a job's stream, message by message. */

const TIMEOUT_MS = 60_000;

export interface Message {
  seq: number;
  type: string;
  final: boolean;
  data: unknown[];
}

export interface Reader {
  /** The next message; fails where none comes. */
  next(): Promise<Message>;
  acknowledge(seq: number): void;
  close(): void;
}

export async function openReader(api: Api, token: string, jobNumber: string, after?: number): Promise<Reader> {
  const arrivals = new EventEmitter();
  const signal = AbortSignal.any([api.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const messages = on(arrivals, "message", { close: ["close"], signal });
  const socket = await openSocket({
    url: api.url,
    path: streamPath(jobNumber, after),
    token,
    onText: (text) => arrivals.emit("message", JSON.parse(text)),
  });
  let code = 0;
  socket.on("close", (closeCode) => {
    code = closeCode;
    arrivals.emit("close");
  });
  return {
    async next() {
      const { value, done } = await messages.next().catch(() => {
        throw new UserError(`Nothing came over the socket of job ${jobNumber} for ${TIMEOUT_MS / 1_000} s`);
      });
      if (done) throw new UserError(`The socket of job ${jobNumber} was closed with ${code}`);
      return (value as [Message])[0];
    },
    acknowledge: (seq) => acknowledge(socket, seq),
    close: () => socket.terminate(),
  };
}
