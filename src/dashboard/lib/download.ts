/** Downloads a file that the page has generated. */
export function saveFile(name: string, type: string, chunks: BlobPart[]): void {
  const address = URL.createObjectURL(new Blob(chunks, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser starts to read the blob after this call returns.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
