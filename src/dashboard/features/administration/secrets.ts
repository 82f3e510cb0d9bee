/** So many random bytes as text that fits anywhere: base64url. */
function randomText(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes));
  return btoa(String.fromCharCode(...random))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Nobody guesses it, and it can still be typed: 20 characters. */
export const newPassword = (): string => randomText(15);

export const newApiKey = (): string => randomText(32);
