/** The client address if neither the proxy nor the connection provides one. */
export const UNKNOWN_ADDRESS = "unknown";

/** Longer than any IP address in text form. */
const MAX_LENGTH = 64;

/**
 * Returns the network that rate limits treat as one client: an IPv4 address, or the /64 of an IPv6 address, because one client usually
 * has a whole /64. Returns undefined for an unknown address: clients without an address must not share a limit, because one of them
 * could lock out all others.
 */
export function clientNetwork(address: string): string | undefined {
  if (address === UNKNOWN_ADDRESS) return undefined;
  const text = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  if (!text.includes(":")) return text.slice(0, MAX_LENGTH);
  // The URL parser returns the canonical form of an IPv6 address.
  if (!URL.canParse(`http://[${text}]`)) return text.slice(0, MAX_LENGTH);
  const groups = groupsOf(new URL(`http://[${text}]`).hostname.slice(1, -1));
  const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  // An IPv4-mapped address, as a dual-stack socket reports it.
  if (groups.slice(0, 6).join(":") === "0:0:0:0:0:ffff") return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  return groups.slice(0, 4).join(":");
}

/** Returns the eight groups of a canonical IPv6 address, in which `::` replaces groups of zeros. */
function groupsOf(address: string): string[] {
  const [before = "", after] = address.split("::");
  const split = (text = ""): string[] => (text === "" ? [] : text.split(":"));
  if (after === undefined) return split(before);
  const [head, tail] = [split(before), split(after)];
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => "0"), ...tail];
}
