import { readGeoNames } from "./rows.ts";

/** As many as a map can show by name without being slow to load. */
const LARGEST = 10_000;

/** Name, latitude, longitude. */
export type Town = [name: string, latitude: number, longitude: number];

/** The world's largest towns, largest first: names on the dashboard's map. */
export function largestTowns(): Town[] {
  return readGeoNames()
    .map((line) => line.split("\t"))
    .map((fields) => ({ fields, population: Number(fields[14]) }))
    .sort((left, right) => right.population - left.population)
    .slice(0, LARGEST)
    .map(({ fields: [, name = "", , , latitude, longitude] }) => [name, rounded(latitude), rounded(longitude)]);
}

/** To about 100 m. */
const rounded = (degrees: string | undefined): number => Math.round(Number(degrees) * 1_000) / 1_000;
