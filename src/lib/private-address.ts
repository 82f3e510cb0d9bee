/** Recognises host names of URLs that name this machine or a private network without a look-up. */

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;

/** First address and prefix length of each block that is not part of the public internet (IANA's special-purpose registry). */
const PRIVATE_IPV4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
];

/**
 * Returns whether a host name of a parsed URL is a name of this machine or a literal address outside the public internet. Parsing has
 * already turned every notation of an address, such as `0x7f.1`, into its usual one. Other names need a look-up, which the network does.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/\.$/, "");
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  if (IPV4.test(host)) return isPrivateIpv4(host);
  return host.startsWith("[") && isPrivateIpv6(host.slice(1, -1));
}

function isPrivateIpv4(address: string): boolean {
  const number = ipv4Number(address);
  return PRIVATE_IPV4.some(([block, bits]) => Math.floor((number - ipv4Number(block)) / 2 ** (32 - bits)) === 0);
}

const ipv4Number = (address: string): number => address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);

/** Only 2000::/3 is public, without the blocks that wrap IPv4 addresses: Teredo (2001::/32) and 6to4 (2002::/16). */
function isPrivateIpv6(address: string): boolean {
  const [first = "", second = ""] = address.split(":");
  const number = Number.parseInt(first || "0", 16);
  if (number < 0x2000 || number > 0x3fff) return true;
  return number === 0x2002 || (number === 0x2001 && Number.parseInt(second || "0", 16) === 0);
}
