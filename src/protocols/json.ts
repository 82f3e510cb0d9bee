import { ProtocolError } from "./protocol-error.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** Objects and lists in one body. An empty one is two characters, and needs about fifty bytes of memory. */
const MAX_CONTAINERS = 500_000;
const [OPENING_BRACE, OPENING_BRACKET] = [0x7b, 0x5b];

/**
 * Parses a body in another system's protocol.
 * @param malformed the message of the `ProtocolError` if it is not JSON
 */
export function parseJson(body: Uint8Array, malformed: string): unknown {
  let containers = 0;
  for (const byte of body) if (byte === OPENING_BRACE || byte === OPENING_BRACKET) containers += 1;
  if (containers > MAX_CONTAINERS) throw new ProtocolError("too_large", "The body has too many objects and lists");
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new ProtocolError("malformed", malformed);
  }
}
