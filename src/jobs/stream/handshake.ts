import * as z from "zod";
import { GRANT_ROLES } from "../../auth/agent-scope.ts";
import { STREAM_PROTOCOL } from "../../schemas/stream-protocol.ts";

/** The request with which the Worker opens a socket at a job's Durable Object, after it has authenticated the reader. */

export const Reader = z.object({
  kind: z.enum(["admin", "user", "agent", "app"]),
  /** Username, ap_id or app_name. */
  name: z.string(),
  /** The account's version, as in the token. */
  version: z.int(),
  /** When the token expires. */
  expiresAtMs: z.number(),
  /** The agent that the job is about, and the role that the reader needs for it. Sockets of an earlier version have none. */
  target: z.object({ apId: z.string(), role: z.enum(GRANT_ROLES) }).optional(),
});
export type Reader = z.output<typeof Reader>;

/** The Worker sends it to the object, which stores it in socket attachments: field names must not change. */
export const StreamHandshake = z.object({
  jobNumber: z.string(),
  reader: Reader,
  form: z.enum(["envelope", "bare"]),
  /** The number of the last message that the reader has. */
  after: z.int().nonnegative().optional(),
});
export type StreamHandshake = z.output<typeof StreamHandshake>;

/** Worker and object may run different versions during a rollout: the name must not change. */
const HEADER = "X-Job-Stream-Opening";

/** Builds a new request. It contains nothing of the client's request, which may carry a token among the offered protocols. */
export function encodeHandshake(handshake: StreamHandshake, offeredProtocols: string | null): Request {
  const headers = new Headers({
    Upgrade: "websocket",
    // A header holds Latin-1 characters only, but a name may hold others.
    [HEADER]: encodeURIComponent(JSON.stringify(handshake)),
  });
  if (offersStream(offeredProtocols)) headers.set("Sec-WebSocket-Protocol", STREAM_PROTOCOL);
  return new Request("https://job-stream/", { headers });
}

/** Throws if the request was not made by `encodeHandshake`. */
export function decodeHandshake({ headers }: Request): { handshake: StreamHandshake; protocol: string | undefined } {
  const handshake = StreamHandshake.parse(JSON.parse(decodeURIComponent(headers.get(HEADER) ?? "null")));
  return { handshake, protocol: offersStream(headers.get("Sec-WebSocket-Protocol")) ? STREAM_PROTOCOL : undefined };
}

function offersStream(protocols: string | null): boolean {
  return (protocols ?? "").split(",").some((protocol) => protocol.trim() === STREAM_PROTOCOL);
}
