import { ApiError } from "../../../api/call.ts";

/** The configuration of an access point as editable text. */

export type Configuration = { [name: string]: unknown };

export const configurationText = (configuration: Configuration): string => JSON.stringify(configuration, null, 2);

/** Parses a configuration. Returns an error text if it is invalid. An empty text is an empty configuration. */
export function parseConfiguration(text: string): { value: Configuration } | { error: string } {
  if (text.trim() === "") return { value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: { ...value } };
    return { error: 'Enter a JSON object, for example { "name": "value" }.' };
  } catch (error) {
    // The message of the browser contains the position of the error.
    return { error: `This is not valid JSON. ${error instanceof Error ? error.message : ""}` };
  }
}

/** Returns the service's errors about a configuration, each with its path. */
export function configurationError(error: Error | undefined): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const messages = error.fieldErrors.flatMap(({ loc, msg }) => {
    const at = loc.indexOf("configuration");
    return at < 0 ? [] : [[loc.slice(at + 1).join("."), msg].filter(Boolean).join(": ")];
  });
  return messages.length === 0 ? undefined : messages.join("; ");
}
