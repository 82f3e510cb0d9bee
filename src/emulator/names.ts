/** Emulated agents are known by how their names begin: among all agents, in the order of names, they lie from here to before there. */
export const EMULATED_PREFIX = "emu-";
export const BEYOND_EMULATED = "emu.";

export const isEmulated = (apId: string): boolean => apId.startsWith(EMULATED_PREFIX);
