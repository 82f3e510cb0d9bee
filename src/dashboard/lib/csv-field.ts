/** A value as a field of CSV (RFC 4180). Texts come from agents: none of them shall be a formula to a spreadsheet. */
export function csvField(value: unknown): string {
  if (typeof value === "number") return String(value);
  const given = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  const text = /^[=+\-@\t\r\n]/.test(given) ? `'${given}` : given;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
