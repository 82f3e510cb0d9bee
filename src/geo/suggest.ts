import { countryCode } from "./countries.ts";
import { type Gazetteer, geocode, type Place, type PlaceQuery } from "./geocode.ts";
import { normalizePlaceName } from "./normalize-name.ts";

export interface PlaceNames extends Gazetteer {
  /** Returns places with a name that starts with the key, each once, by descending weight. */
  findByPrefix(query: PlaceQuery, limit: number): Promise<Place[]>;
}

export interface Suggestion extends Place {
  /** Geocodes to exactly this place: its name, or its coordinates if a place of higher weight has the same name. */
  location: string;
}

/** Suggests places for the start of a name. A country after a comma filters them, as soon as it is complete enough to be recognized. */
export async function suggestPlaces(text: string, limit: number, places: PlaceNames): Promise<Suggestion[]> {
  const [name = "", ...rest] = text.split(",");
  const key = normalizePlaceName(name);
  if (key === "") return [];
  const found = await places.findByPrefix({ key, country: countryCode(rest.at(-1) ?? "") }, limit);
  const names = found.map((place) => `${place.name}, ${place.country}`);
  const resolved = await geocode(names, places);
  return found.map((place, i) => {
    const { latitude, longitude } = place;
    const match = resolved[i];
    const isUnique = match && "latitude" in match && match.latitude === latitude && match.longitude === longitude;
    return { ...place, location: (isUnique && names[i]) || `${latitude}, ${longitude}` };
  });
}
