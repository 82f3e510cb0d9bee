import { countryCode } from "./countries.ts";
import { type Gazetteer, geocode, type Place, type PlaceQuery } from "./geocode.ts";
import { normalizePlaceName } from "./normalize-name.ts";

export interface PlaceNames extends Gazetteer {
  /** Places of which some name begins with the key, each once, the one that is most likely meant first. */
  beginning(query: PlaceQuery, limit: number): Promise<Place[]>;
}

export interface Suggestion extends Place {
  /** Taken for this place, and no other: its name, or its coordinates where a greater place has that name. */
  location: string;
}

/** Completes the name of a place. A country after a comma narrows it, once there is enough of it to be known. */
export async function suggestPlaces(text: string, limit: number, places: PlaceNames): Promise<Suggestion[]> {
  const [name = "", ...rest] = text.split(",");
  const key = normalizePlaceName(name);
  if (key === "") return [];
  const found = await places.beginning({ key, country: countryCode(rest.at(-1) ?? "") }, limit);
  const names = found.map((place) => `${place.name}, ${place.country}`);
  const meant = await geocode(names, places);
  return found.map((place, i) => {
    const { latitude, longitude } = place;
    const taken = meant[i];
    const isMeant = taken && "latitude" in taken && taken.latitude === latitude && taken.longitude === longitude;
    return { ...place, location: (isMeant && names[i]) || `${latitude}, ${longitude}` };
  });
}
