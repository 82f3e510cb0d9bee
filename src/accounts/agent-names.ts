/** Emulated agents are known by how their names begin: among all agents, in the order of names, they lie from here to before there. */
export const EMULATED_PREFIX = "emu-";
export const BEYOND_EMULATED = "emu.";

export const isEmulated = (apId: string): boolean => apId.startsWith(EMULATED_PREFIX);

/** How many characters of its job's number an emulated agent's name holds. */
export const JOB_CHARACTERS = 8;

/** The first characters of the number of the job that an emulated agent belongs to; undefined for other agents. */
export const emulatedJobOf = (apId: string): string | undefined => (isEmulated(apId) ? apId.split("-")[2] : undefined);
