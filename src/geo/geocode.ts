import type { Geolocation } from "../schemas/agent.ts";
import { parseCoordinates } from "./coordinates.ts";
import { countryCode } from "./countries.ts";
import { normalizePlaceName } from "./normalize-name.ts";

/** Resolves the locations of access points: coordinates in a common format, or the name of a place. */

export interface Place extends Geolocation {
  name: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
}

export interface PlaceQuery {
  /** A name, normalized by `normalizePlaceName`. */
  key: string;
  country?: string | undefined;
}

export interface Gazetteer {
  /** Returns one result per query, in the same order. Of several places with one name it returns the most populous. */
  findAll(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]>;
}

export interface Location extends Geolocation {
  /** The place that matched a name: "Bristol, GB". */
  place?: string;
}

/** `reason` says why a text is not a location. */
export type Resolution = Location | { reason: string };

/** Longer than any name in the gazetteer followed by a country. */
const MAX_LENGTH = 200;
const NOT_A_LOCATION =
  "not a location: give latitude and longitude, a geo: URI, an Open Location Code or the name of a town";

/** Parses a text without the gazetteer: returns coordinates, a query for a name, or the reason for a rejection. */
export function parseLocation(text: string): Resolution | { query: PlaceQuery } {
  if (text.length > MAX_LENGTH) return { reason: `longer than ${MAX_LENGTH} characters` };
  const plain = text.trim().replace(/\s+/g, " ");
  // JSON allows lone surrogates, NUL and terminal escape sequences.
  if (!plain.isWellFormed() || /[\p{Cc}\p{Co}\p{Cn}]/u.test(plain)) return { reason: NOT_A_LOCATION };
  const coordinates = parseCoordinates(plain);
  if (coordinates !== undefined) return coordinates;
  const query = placeQuery(plain);
  return query === undefined ? { reason: NOT_A_LOCATION } : { query };
}

function placeQuery(text: string): PlaceQuery | undefined {
  const segments = text.split(",").map((segment) => segment.trim());
  const country = segments.length > 1 ? countryCode(segments.at(-1) ?? "") : undefined;
  const names =
    country === undefined
      ? // A comma can be part of a name: "Washington, D.C.".
        segments
      : // "Bristol, England, UK": drops England, which names the same country as UK.
        segments.slice(0, -1).filter((segment, index) => index === 0 || countryCode(segment) !== country);
  const key = normalizePlaceName(names.join(" "));
  return /\p{L}/u.test(key) ? { key, country } : undefined;
}

/** Resolves texts with one call to the gazetteer, which looks up each name once. Returns the results in the order of the texts. */
export async function geocode(texts: readonly string[], gazetteer: Gazetteer): Promise<Resolution[]> {
  const parsed = new Map<string, ReturnType<typeof parseLocation>>();
  const queries = new Map<string, PlaceQuery>();
  for (const text of texts) {
    if (parsed.has(text)) continue;
    const location = parseLocation(text);
    parsed.set(text, location);
    if ("query" in location) queries.set(idOf(location.query), location.query);
  }
  const places = queries.size === 0 ? [] : await gazetteer.findAll([...queries.values()]);
  const found = new Map([...queries.keys()].map((id, index) => [id, places[index]]));
  return texts.map((text) => {
    const location = parsed.get(text) ?? { reason: NOT_A_LOCATION };
    if (!("query" in location)) return location;
    const place = found.get(idOf(location.query));
    if (place === undefined) return { reason: "no such place in the gazetteer" };
    const { latitude, longitude, name, country } = place;
    return { latitude, longitude, place: `${name}, ${country}` };
  });
}

const idOf = ({ key, country = "" }: PlaceQuery): string => `${country} ${key}`;
