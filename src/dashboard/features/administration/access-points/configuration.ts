import { ApiError } from "../../../api/call.ts";

/** An access point's configuration as text to be edited. */

export type Configuration = { [name: string]: unknown };

export const configurationText = (configuration: Configuration): string => JSON.stringify(configuration, null, 2);

/** The text's meaning, or what is wrong with it. Nothing written is nothing configured. */
export function readConfiguration(text: string): { value: Configuration } | { fault: string } {
  if (text.trim() === "") return { value: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: { ...value } };
    return { fault: 'This has to be an object: { "name": "value" }.' };
  } catch (error) {
    // The browser's own words say where.
    return { fault: `This is not valid JSON. ${error instanceof Error ? error.message : ""}` };
  }
}

/** What the service does not like about it, each thing with where it is. */
export function configurationFault(error: Error | undefined): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const faults = error.fieldErrors.flatMap(({ loc, msg }) => {
    const at = loc.indexOf("configuration");
    return at < 0 ? [] : [[loc.slice(at + 1).join("."), msg].filter(Boolean).join(": ")];
  });
  return faults.length === 0 ? undefined : faults.join("; ");
}
