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
