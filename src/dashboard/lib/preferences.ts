/** Preferences that the browser keeps for a person. Some browsers do not; then they last as long as the page. */

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
    // No preference is worth an error.
  }
}
