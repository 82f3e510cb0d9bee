/** Names of emulated agents start with this prefix. */
export const EMULATED_PREFIX = "emu-";
/** Sorts directly after all names with the prefix. Used as the end of a range in queries. */
export const BEYOND_EMULATED = "emu.";

export const isEmulated = (apId: string): boolean => apId.startsWith(EMULATED_PREFIX);

/** Number of characters of the job number in the name of an emulated agent. */
export const JOB_CHARACTERS = 8;

/** Returns the first `JOB_CHARACTERS` of the job number of an emulated agent. Undefined for other agents. */
export const emulatedJobOf = (apId: string): string | undefined => (isEmulated(apId) ? apId.split("-")[2] : undefined);
