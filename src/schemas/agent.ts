import * as z from "zod";
import { CustomLabels } from "./labels.ts";
import { dictionary, Identifier, Password } from "./primitives.ts";

export interface Geolocation {
  latitude: number;
  longitude: number;
}

const LATITUDE_NAMES = ["latitude", "lat"];
const LONGITUDE_NAMES = ["longitude", "lon", "lng", "long"];

const toNumber = (value: unknown): unknown =>
  typeof value === "string" && /^\s*[+-]?(?:\d+\.?\d*|\.\d+)\s*$/.test(value) ? Number(value) : value;

const degrees = (bound: number) => z.preprocess(toNumber, z.number().gte(-bound).lte(bound));

const Coordinates = z.object({ latitude: degrees(90), longitude: degrees(180) });

/** Replaces alternative field names by `latitude` and `longitude`. */
function withStandardNames(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const given = new Map(Object.entries(value));
  const first = (names: string[]): unknown => names.map((name) => given.get(name)).find((found) => found !== undefined);
  return { latitude: first(LATITUDE_NAMES), longitude: first(LONGITUDE_NAMES) };
}

export const Geolocation = z.preprocess(withStandardNames, Coordinates);

/** An agent's configuration. It may have any fields. Its geolocation is stored in one form. */
export const Configuration = dictionary(z.looseObject({ geolocation: Geolocation.optional() })).meta({
  description: "Any fields. `geolocation` has `latitude` and `longitude` (also accepted: `lat`, `lon`, `lng`, `long`).",
});

export const Agent = z
  .object({ id: z.uuid(), ap_id: z.string(), configuration: z.record(z.string(), z.unknown()) })
  .meta({ id: "Agent" });
export type Agent = z.output<typeof Agent>;

export const AgentCreate = z
  .object({
    ap_id: Identifier,
    password: Password,
    configuration: Configuration,
    labels: CustomLabels.optional(),
  })
  .meta({ id: "AgentCreate" });
export type AgentCreate = z.output<typeof AgentCreate>;

export const AgentUpdate = z
  .object({ password: Password.nullish(), configuration: Configuration.nullish() })
  .meta({ id: "AgentUpdate" });
export type AgentUpdate = z.output<typeof AgentUpdate>;

export const AgentPath = z.object({ ap_id: z.string() });

/** Names of emulated agents start with this prefix. */
export const EMULATED_PREFIX = "emu-";
/** Sorts directly after all names with the prefix. Used as the end of a range in queries. */
export const BEYOND_EMULATED = "emu.";

export const isEmulated = (apId: string): boolean => apId.startsWith(EMULATED_PREFIX);

/** Number of characters of the job number in the name of an emulated agent. */
export const JOB_CHARACTERS = 8;

/** Returns the first `JOB_CHARACTERS` of the job number of an emulated agent. Undefined for other agents. */
export const emulatedJobOf = (apId: string): string | undefined => (isEmulated(apId) ? apId.split("-")[2] : undefined);
