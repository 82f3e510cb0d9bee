/** The protocol of a job's WebSocket, shared by the Worker, the job's object and the client. */

export const STREAM_PROTOCOL = "job-stream.v1";

/** Data that callback clients post or the service reads from its stores. The other kinds are about the stream itself. */
export const DATA_KINDS = ["agent_data", "agent_details", "emulator", "command"] as const;
export const MESSAGE_KINDS = [...DATA_KINDS, "status", "gap", "error"] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];
/** A gap is created when it is sent, and never stored. */
export type StoredKind = Exclude<MessageKind, "gap">;

/** Format of the messages on a socket: with envelope, or only the data, as clients of the reference service expect. */
export type StreamFormat = "envelope" | "bare";

/** What a WebSocket of the service sends: the messages of a job, or the event log. */
export type WebSocketFormat = StreamFormat | "events";

export const BUFFER_LIMITS = {
  messages: 1_000,
  bytes: 16 * 1024 * 1024,
  retentionMs: 24 * 60 * 60 * 1000,
  keys: 10_000,
};

export const SOCKET_LIMITS = { sockets: 16, unacknowledgedBytes: 16 * 1024 * 1024 };

/** The platform replies to these without waking the job's object. */
export const KEEP_ALIVE = { ping: "ping", pong: "pong" } as const;

/** Reasons why the service closes a socket, and what a client should do. */
export const CLOSE = {
  /** The client sent an unknown message. Only in the envelope format. */
  unknown: { code: 1008, reason: 'Only {"ack": <seq>} and ping are understood', remedy: "Fix the client." },
  tooLarge: { code: 1009, reason: "The message is too large", remedy: "Fix the client." },
  broken: { code: 1011, reason: "The connection failed", remedy: "Connect again." },
  slow: {
    code: 1013,
    reason: "Too much is unacknowledged; resume with ?after=<seq>",
    remedy: "Connect again and acknowledge more often.",
  },
  tokenExpired: { code: 4401, reason: "The token has expired", remedy: "Log in again, then connect again." },
  notAllowed: {
    code: 4403,
    reason: "Not enough permissions any more",
    remedy: "The account was changed or deleted. Log in again, if the account still exists.",
  },
  cancelled: { code: 4410, reason: "The job was cancelled", remedy: "Stop: no more messages follow." },
  expired: { code: 4410, reason: "The job has expired", remedy: "Stop: no more messages follow." },
} as const;
export type Close = (typeof CLOSE)[keyof typeof CLOSE];

/** Codes that mean "no code". The WebSocket protocol forbids sending them. */
const NEVER_SENT: ReadonlySet<number> = new Set([1004, 1005, 1006, 1015]);

const isSendable = (code: number): boolean => code >= 1000 && code <= 4999 && !NEVER_SENT.has(code);

/** Returns the code for the reply to a Close frame: the code of the client, if it may be sent. */
export const echoedCloseCode = (code: number): number => (isSendable(code) ? code : 1000);
