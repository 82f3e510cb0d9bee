import type { JobKind, JobState } from "../../../schemas/job.ts";

/** The kinds and states of jobs, with their names for people. */
export const KINDS: readonly (readonly [JobKind, string])[] = [
  ["agent_data", "History"],
  ["agent_details", "All access points"],
  ["command", "Command"],
  ["emulator", "Emulator"],
  ["stream", "Custom stream"],
];

export const STATES: readonly (readonly [JobState, string])[] = [
  ["queued", "Queued"],
  ["running", "Running"],
  ["done", "Done"],
  ["failed", "Failed"],
  ["expired", "Expired"],
  ["cancelled", "Cancelled"],
];

export const kindText = (kind: JobKind): string => KINDS.find(([name]) => name === kind)?.[1] ?? kind;

/** Shortens a number that the service generated. A caller may choose a number itself; that one stays as it is. */
export const shortNumber = (jobNumber: string): string => (isUuid(jobNumber) ? jobNumber.slice(0, 8) : jobNumber);

const isUuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text);

/** Returns the name of the owner, with its kind unless it is a user. */
export const ownerText = (owner: string): string => owner.replace(/^user:/, "").replace(/^(\w+):/, "$1 ");

export const isActive = (state: JobState): boolean => state === "queued" || state === "running";
