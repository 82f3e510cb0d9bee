/**
 * What browsers say, and Vite about style sheets, if a file of a page cannot be fetched. They have no error type of its own for it: an
 * error with any other text was thrown by the module itself.
 */
const MISSING_FILE = [
  /^Failed to fetch dynamically imported module/i, // Chromium
  /^error loading dynamically imported module/i, // Firefox
  /^Importing a module script failed/i, // Safari
  /^Unable to preload CSS/i, // Vite
];

/** Tells whether an import failed because a file is missing, as after an update of the service, or the network is down. */
export const isMissingFile = (error: unknown): boolean =>
  error instanceof Error && MISSING_FILE.some((text) => text.test(error.message));
