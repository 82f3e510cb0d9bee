import type * as z from "zod";
import type { STREAM_MESSAGES } from "../../schemas/stream.ts";
import { renewed, session } from "../session.ts";

/** A message of a job's stream. */
export type JobMessage = z.output<(typeof STREAM_MESSAGES)[keyof typeof STREAM_MESSAGES]>;

export type SocketState =
  | { state: "connecting" }
  | { state: "open" }
  /** Lost; tried again after a while. */
  | { state: "lost"; reason: string }
  /** There is nothing more to come. */
  | { state: "over"; reason: string };

export interface JobListener {
  /** In order, each once. */
  message(message: JobMessage): void;
  state(state: SocketState): void;
}

/** Of the service's close codes, those that trying again does not help against. */
const TOKEN_ENDED = 4401;
const FINAL_CODES: ReadonlySet<number> = new Set([1008, 1009, 4403, 4410]);
const PING_MS = 30_000;
const LONGEST_PAUSE_MS = 15_000;
/** Acknowledgements are gathered: one for each message would double the traffic. */
const ACKNOWLEDGE_MS = 250;

/** Listens to a job, and resumes where it was after a lost connection. The answer ends it. */
export function listenToJob(jobNumber: string, listener: JobListener): () => void {
  const ending = new AbortController();
  let lastSeq = 0;
  let attempt = 0;

  const connect = () => {
    const token = session.get()?.token ?? "";
    const after = lastSeq > 0 ? `?after=${lastSeq}` : "";
    const address = new URL(`/api/v1/ws/${encodeURIComponent(jobNumber)}${after}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address, ["job-stream.v1", `bearer.${token}`]);
    let acknowledging: ReturnType<typeof setTimeout> | undefined;
    const acknowledge = () => {
      acknowledging = undefined;
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ ack: lastSeq }));
    };
    const pinging = setInterval(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send("ping");
    }, PING_MS);
    const close = () => socket.close(1000);
    ending.signal.addEventListener("abort", close);

    listener.state({ state: "connecting" });
    socket.onopen = () => {
      attempt = 0;
      listener.state({ state: "open" });
    };
    socket.onmessage = ({ data }) => {
      if (data === "pong" || ending.signal.aborted) return;
      const message = JSON.parse(String(data)) as JobMessage;
      // At least once is what the service promises.
      if (message.seq <= lastSeq) return;
      lastSeq = message.seq;
      listener.message(message);
      acknowledging ??= setTimeout(acknowledge, ACKNOWLEDGE_MS);
    };
    socket.onclose = ({ code, reason }) => {
      clearInterval(pinging);
      clearTimeout(acknowledging);
      ending.signal.removeEventListener("abort", close);
      if (ending.signal.aborted) return;
      if (FINAL_CODES.has(code)) return listener.state({ state: "over", reason });
      listener.state({ state: "lost", reason });
      if (code === TOKEN_ENDED) {
        void renewed(token, ending.signal).then(connect, () => {});
        return;
      }
      const pauseMs = Math.min(LONGEST_PAUSE_MS, 500 * 2 ** attempt++) * (0.5 + Math.random() / 2);
      const again = setTimeout(connect, pauseMs);
      ending.signal.addEventListener("abort", () => clearTimeout(again), { once: true });
    };
  };

  connect();
  return () => ending.abort();
}
