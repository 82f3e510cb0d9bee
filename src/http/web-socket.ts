import { UpgradeRequired } from "../lib/errors.ts";
import type { AppContext } from "./context.ts";

/**
 * Returns the protocols that a WebSocket handshake offers. Throws `UpgradeRequired` for any other request. The platform would reject another
 * version of the protocol with its own message. A HEAD request cannot be upgraded.
 */
export function requireHandshake({ req }: AppContext): string | null {
  const isHandshake =
    req.method === "GET" &&
    req.header("Upgrade")?.toLowerCase() === "websocket" &&
    (req.header("Sec-WebSocket-Version") ?? "13") === "13";
  if (!isHandshake) throw new UpgradeRequired();
  return req.header("Sec-WebSocket-Protocol") ?? null;
}
