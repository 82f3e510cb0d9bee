/** Matches a coding and its weight, as in `gzip;q=0.5` (RFC 9110, 12.5.3). */
const ELEMENT = /^([\w!#$%&'*+.^`|~-]+)(?:\s*;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i;

/** Returns whether an `Accept-Encoding` header allows gzip and does not prefer `identity`. Ignores invalid elements. */
export function acceptsGzip(header: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const element of (header ?? "").split(",")) {
    const [, coding, weight = "1"] = ELEMENT.exec(element.trim()) ?? [];
    if (coding !== undefined) weights.set(coding.toLowerCase(), Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  return gzip > 0 && gzip >= (weights.get("identity") ?? 0);
}

interface EncodingRequest {
  headers: { get(name: string): string | null };
  cf?: Record<string, unknown> | undefined;
}

/**
 * Returns the `Accept-Encoding` header that the client sent. Proxies such as Cloudflare and `wrangler dev` replace the header and keep
 * the original value in `cf`.
 */
export function clientAcceptEncoding({ headers, cf }: EncodingRequest): string | undefined {
  const original = cf?.clientAcceptEncoding;
  return typeof original === "string" ? original : (headers.get("Accept-Encoding") ?? undefined);
}
