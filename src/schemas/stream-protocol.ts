/** What the Worker, the job's object and a client agree on about a job's WebSocket. */

export const STREAM_PROTOCOL = "job-stream.v1";

/** What subscribers post and the service reads out of its stores; the rest is about the stream itself. */
export const DATA_KINDS = ["agent_data", "agent_details", "emulator", "command"] as const;
export const MESSAGE_KINDS = [...DATA_KINDS, "status", "gap", "error"] as const;
export type MessageKind = (typeof MESSAGE_KINDS)[number];
/** A gap is made when it is sent; nobody posts one. */
export type StoredKind = Exclude<MessageKind, "gap">;

/** How a socket wants its messages: whole, or just the data, as clients of the reference expect. */
export type StreamFormat = "envelope" | "bare";

export const BUFFER_LIMITS = {
  messages: 1_000,
  bytes: 16 * 1024 * 1024,
  retentionMs: 24 * 60 * 60 * 1000,
  keys: 10_000,
};

export const SOCKET_LIMITS = { sockets: 16, unacknowledgedBytes: 16 * 1024 * 1024 };

/** Why the service closes a socket, and what a client does about it. */
export const CLOSE = {
  /** A client that says what no client says; only in envelope form. */
  unknown: { code: 1008, reason: 'Only {"ack": <seq>} and ping are understood', remedy: "Mend the client." },
  tooLarge: { code: 1009, reason: "The message is too large", remedy: "Mend the client." },
  broken: { code: 1011, reason: "The connection failed", remedy: "Connect again." },
  slow: {
    code: 1013,
    reason: "Too much is unacknowledged; resume with ?after=<seq>",
    remedy: "Connect again, and acknowledge more often.",
  },
  tokenExpired: { code: 4401, reason: "The token has expired", remedy: "Log in again, then connect again." },
  notAllowed: {
    code: 4403,
    reason: "Not enough permissions any more",
    remedy: "The account was changed or deleted: log in again, if it still can.",
  },
  cancelled: { code: 4410, reason: "The job was cancelled", remedy: "There is nothing more to come." },
  expired: { code: 4410, reason: "The job has expired", remedy: "There is nothing more to come." },
} as const;
export type Close = (typeof CLOSE)[keyof typeof CLOSE];

/** Codes that stand for the lack of one, and must not be sent. */
const NEVER_SENT: ReadonlySet<number> = new Set([1004, 1005, 1006, 1015]);

const mayBeSent = (code: number): boolean => code >= 1000 && code <= 4999 && !NEVER_SENT.has(code);

/** What a client's Close is answered with: its own code, where it has one that may be sent. */
export const echoedCloseCode = (code: number): number => (mayBeSent(code) ? code : 1000);
