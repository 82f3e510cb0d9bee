import * as z from "zod";
import { integer } from "./primitives.ts";

export const ACCESS_POINT_TYPES = ["5G", "WiFi", "LiFi"] as const;
export type AccessPointType = (typeof ACCESS_POINT_TYPES)[number];

/** Limits the sum over all specifications of one request. */
export const MAX_ACCESS_POINTS = 10_000;

export const EmulatorSpec = z
  .object({
    access_point_type: z
      .string()
      .regex(/^(5G|WiFi|LiFi)$/)
      .transform((type) => type as AccessPointType),
    num_access_points: integer(z.int().gt(0).lte(1000)),
    locations: z
      .array(z.string())
      .min(1)
      .max(1000)
      .describe("Coordinates, plus codes, or names of places. The access points are assigned to them in turn."),
    num_devices: integer(z.int().gt(0).lte(100_000)).describe("Devices at each access point."),
    duration: integer(z.int().gt(0).lte(31_536_000)).describe("Duration in seconds."),
  })
  .meta({ id: "EmulatorSpec" });

export const EmulatorSpinupRequest = z
  .object({ emulators: z.array(EmulatorSpec).min(1).max(100) })
  .refine(
    ({ emulators }) =>
      emulators.reduce((sum, { num_access_points }) => sum + num_access_points, 0) <= MAX_ACCESS_POINTS,
    { error: "there must not be more than 10,000 access points in all", path: ["emulators"] },
  )
  .meta({ id: "EmulatorSpinupRequest" });
export type EmulatorSpinupRequest = z.output<typeof EmulatorSpinupRequest>;

export const SpinupQueued = z
  .object({
    status: z.literal("queued"),
    job_number: z.string(),
    websocket: z.string(),
    agents: z.int().describe("Number of agents created."),
    ap_ids: z.array(z.string()),
    locations: z
      .array(
        z.object({
          location: z.string(),
          latitude: z.number(),
          longitude: z.number(),
          place: z.string().optional().describe("The place that a name was resolved to."),
        }),
      )
      .describe("The position of each location."),
  })
  .meta({ id: "SpinupQueued" });
export type SpinupQueued = z.output<typeof SpinupQueued>;

export const PlacesQuery = z.object({
  text: z
    .string()
    .min(1)
    .max(100)
    .describe("The first characters of a town's name. A country after a comma limits the search to it."),
  limit: integer(z.int().gt(0).lte(20)).default(8),
});
export type PlacesQuery = z.output<typeof PlacesQuery>;

export const PlaceSuggestion = z
  .object({
    name: z.string(),
    country: z.string().describe("ISO 3166-1 alpha-2."),
    latitude: z.number(),
    longitude: z.number(),
    location: z.string().describe("The text that identifies exactly this place as a location."),
  })
  .meta({ id: "PlaceSuggestion" });
export type PlaceSuggestion = z.output<typeof PlaceSuggestion>;

export const PART_STATES = ["queued", "running", "done", "failed"] as const;
export type PartState = (typeof PART_STATES)[number];

/** An emulator's report about its part of a job. Other fields are allowed. */
export const EmulatorReport = z.looseObject({
  part: z.int().gt(0),
  state: z.enum(["running", "done", "failed"]),
  /** Name of the emulator. The first emulator that reports a part owns it. */
  emulator: z.string().min(1).max(128),
});
export type EmulatorReport = z.output<typeof EmulatorReport>;
