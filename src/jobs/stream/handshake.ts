import * as z from "zod";
import { STREAM_PROTOCOL } from "../../schemas/stream-protocol.ts";

/** What the Worker tells a job's object about a socket that is to be opened. The Worker has authenticated the reader by then. */

export const Reader = z.object({
  kind: z.enum(["admin", "user", "agent", "app"]),
  /** Username, ap_id or app_name. */
  name: z.string(),
  /** Of the account, as in the token. */
  version: z.int(),
  /** When the token ends. */
  expiresAtMs: z.number(),
});
export type Reader = z.output<typeof Reader>;

export const StreamHandshake = z.object({
  jobNumber: z.string(),
  reader: Reader,
  form: z.enum(["envelope", "bare"]),
  /** The last message that the reader has. */
  after: z.int().nonnegative().optional(),
});
export type StreamHandshake = z.output<typeof StreamHandshake>;

const HEADER = "X-Job-Stream-Opening";

/**
 * The request that opens a socket at the job's object, made anew: nothing that came from outside goes along, least of all the
 * token among the protocols that a browser offers.
 */
export function encodeHandshake(opening: StreamHandshake, offeredProtocols: string | null): Request {
  const headers = new Headers({
    Upgrade: "websocket",
    // A header holds Latin letters only, a name may hold others.
    [HEADER]: encodeURIComponent(JSON.stringify(opening)),
  });
  if (offers(offeredProtocols)) headers.set("Sec-WebSocket-Protocol", STREAM_PROTOCOL);
  return new Request("https://job-stream/", { headers });
}

/** Throws where the request was not made by `encodeHandshake`. */
export function decodeHandshake({ headers }: Request): { opening: StreamHandshake; protocol: string | undefined } {
  const opening = StreamHandshake.parse(JSON.parse(decodeURIComponent(headers.get(HEADER) ?? "null")));
  return { opening, protocol: offers(headers.get("Sec-WebSocket-Protocol")) ? STREAM_PROTOCOL : undefined };
}

function offers(protocols: string | null): boolean {
  return (protocols ?? "").split(",").some((protocol) => protocol.trim() === STREAM_PROTOCOL);
}
