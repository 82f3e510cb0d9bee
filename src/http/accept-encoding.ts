/** A coding and its weight, as in `gzip;q=0.5` (RFC 9110, 12.5.3). */
const ELEMENT = /^([\w!#$%&'*+.^`|~-]+)(?:\s*;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i;

/** Tells whether a client's `Accept-Encoding` allows gzip, and does not prefer no encoding. Elements that are not valid do not count. */
export function acceptsGzip(header: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const element of (header ?? "").split(",")) {
    const [, coding, weight = "1"] = ELEMENT.exec(element.trim()) ?? [];
    if (coding !== undefined) weights.set(coding.toLowerCase(), Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  return gzip > 0 && gzip >= (weights.get("identity") ?? 0);
}
