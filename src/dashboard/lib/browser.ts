/** Preferences of the user, kept in the browser's storage. Some browsers forbid its use. */

export function getPreference(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function setPreference(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Without storage, the preference lasts until the page is closed.
  }
}

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
