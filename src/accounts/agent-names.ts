/** Names of emulated agents start with this prefix. In the order of names they lie from here to before `BEYOND_EMULATED`. */
export const EMULATED_PREFIX = "emu-";
export const BEYOND_EMULATED = "emu.";

export const isEmulated = (apId: string): boolean => apId.startsWith(EMULATED_PREFIX);

/** Number of characters of the job number in the name of an emulated agent. */
export const JOB_CHARACTERS = 8;

/** Returns the first `JOB_CHARACTERS` of the job number of an emulated agent. Undefined for other agents. */
export const emulatedJobOf = (apId: string): string | undefined => (isEmulated(apId) ? apId.split("-")[2] : undefined);
