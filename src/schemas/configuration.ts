import * as z from "zod";
import { dictionary } from "./primitives.ts";

/** An agent's configuration: free in form, but for its geolocation, which has one shape however it was given. */

export interface Geolocation {
  latitude: number;
  longitude: number;
}

const LATITUDE_NAMES = ["latitude", "lat"];
const LONGITUDE_NAMES = ["longitude", "lon", "lng", "long"];

const numeric = (value: unknown): unknown =>
  typeof value === "string" && /^\s*[+-]?(?:\d+\.?\d*|\.\d+)\s*$/.test(value) ? Number(value) : value;

const degrees = (bound: number) => z.preprocess(numeric, z.number().gte(-bound).lte(bound));

const Coordinates = z.object({ latitude: degrees(90), longitude: degrees(180) });

/** Other names for the two members give way to their own. */
function withOwnNames(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const given = new Map(Object.entries(value));
  const first = (names: string[]): unknown => names.map((name) => given.get(name)).find((found) => found !== undefined);
  return { latitude: first(LATITUDE_NAMES), longitude: first(LONGITUDE_NAMES) };
}

export const Geolocation = z.preprocess(withOwnNames, Coordinates);

export const Configuration = dictionary(z.looseObject({ geolocation: Geolocation.optional() })).meta({
  description: "Free in form. `geolocation` takes `latitude` and `longitude` (also `lat`, `lon`, `lng`, `long`).",
});
