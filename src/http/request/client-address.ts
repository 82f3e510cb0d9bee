import { UNKNOWN_ADDRESS } from "../../accounts/login/client-network.ts";

/** Reads the client address from the proxy's header, or from the connection if the setting is `peer`. */
export function clientAddressBy(header: string): (request: Request) => string {
  // The proxy appends the address that it sees as the last one. A client may have forged those before it.
  if (header !== "peer") return ({ headers }) => headers.get(header)?.split(",").at(-1)?.trim() || UNKNOWN_ADDRESS;
  // workerd gives the address with a port, which differs between the connections of one client.
  return ({ cf }) => String(cf?.clientIp ?? UNKNOWN_ADDRESS).replace(/:\d+$/, "");
}
