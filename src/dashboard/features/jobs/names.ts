import type { JobKind, JobState } from "../../../schemas/job.ts";

/** What people call it. */
export const KINDS: readonly (readonly [JobKind, string])[] = [
  ["agent_data", "History"],
  ["agent_details", "All access points"],
  ["command", "Command"],
  ["emulator", "Emulator"],
  ["stream", "Own stream"],
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

/** Enough to tell one from another; a number of one's own may be short as it is. */
export const shortNumber = (jobNumber: string): string => (isUuid(jobNumber) ? jobNumber.slice(0, 8) : jobNumber);

const isUuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text);

/** `user:…` is what most are. */
export const ownerText = (owner: string): string => owner.replace(/^user:/, "").replace(/^(\w+):/, "$1 ");

export const isUnderWay = (state: JobState): boolean => state === "queued" || state === "running";
