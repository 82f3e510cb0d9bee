/** Lets the person save a text as a file. */
export function saveFile(name: string, type: string, parts: BlobPart[]): void {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** A value as a field of CSV (RFC 4180). Texts come from agents: none of them shall be a formula to a spreadsheet. */
export function csvField(value: unknown): string {
  if (typeof value === "number") return String(value);
  const given = typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);
  const text = /^[=+\-@\t]/.test(given) ? `'${given}` : given;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
