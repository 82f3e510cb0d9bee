import type { Geolocation } from "../schemas/agent.ts";
import { readCoordinates } from "./coordinates.ts";
import { countryCode } from "./countries.ts";
import { normalizePlaceName } from "./normalize-name.ts";

/** Where access points are to stand: coordinates in any common form, or the name of a place. */

export interface Place extends Geolocation {
  name: string;
  /** ISO 3166-1 alpha-2. */
  country: string;
}

export interface PlaceQuery {
  /** As `normalizePlaceName` makes it. */
  key: string;
  country?: string | undefined;
}

/** Of several places with one name, the most populous. */
export interface Gazetteer {
  /** In the order of the queries. */
  findAll(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]>;
}

export interface Location extends Geolocation {
  /** What a name was taken for: "Bristol, GB". */
  place?: string;
}

export type Resolution = Location | { refused: string };

/** The longest name of a place in the gazetteer is shorter, with a country after it. */
const MAX_LENGTH = 200;
const NOT_UNDERSTOOD =
  "not a location: give latitude and longitude, a geo: URI, an Open Location Code or the name of a town";

/** What the text says by itself: coordinates, a name to look up, or nothing. */
export function readLocation(text: string): Resolution | { query: PlaceQuery } {
  if (text.length > MAX_LENGTH) return { refused: `longer than ${MAX_LENGTH} characters` };
  const plain = text.trim().replace(/\s+/g, " ");
  // Whatever JSON lets through: half characters, NUL, colours of a terminal.
  if (!plain.isWellFormed() || /[\p{Cc}\p{Co}\p{Cn}]/u.test(plain)) return { refused: NOT_UNDERSTOOD };
  const coordinates = readCoordinates(plain);
  if (coordinates !== undefined) return coordinates;
  const query = placeQuery(plain);
  return query === undefined ? { refused: NOT_UNDERSTOOD } : { query };
}

function placeQuery(text: string): PlaceQuery | undefined {
  const parts = text.split(",").map((part) => part.trim());
  const country = parts.length > 1 ? countryCode(parts.at(-1) ?? "") : undefined;
  const names =
    country === undefined
      ? // A comma can be part of a name: "Washington, D.C.".
        parts
      : // "Bristol, England, UK": England says nothing that UK does not.
        parts.slice(0, -1).filter((part, index) => index === 0 || countryCode(part) !== country);
  const key = normalizePlaceName(names.join(" "));
  return /\p{L}/u.test(key) ? { key, country } : undefined;
}

/** All at once, each name being looked up once. In the order of the texts. */
export async function geocode(texts: readonly string[], gazetteer: Gazetteer): Promise<Resolution[]> {
  const readings = new Map<string, ReturnType<typeof readLocation>>();
  const wanted = new Map<string, PlaceQuery>();
  for (const text of texts) {
    if (readings.has(text)) continue;
    const reading = readLocation(text);
    readings.set(text, reading);
    if ("query" in reading) wanted.set(idOf(reading.query), reading.query);
  }
  const places = wanted.size === 0 ? [] : await gazetteer.findAll([...wanted.values()]);
  const found = new Map([...wanted.keys()].map((id, index) => [id, places[index]]));
  return texts.map((text) => {
    const reading = readings.get(text) ?? { refused: NOT_UNDERSTOOD };
    if (!("query" in reading)) return reading;
    const place = found.get(idOf(reading.query));
    if (place === undefined) return { refused: "no such place in the gazetteer" };
    const { latitude, longitude, name, country } = place;
    return { latitude, longitude, place: `${name}, ${country}` };
  });
}

const idOf = ({ key, country = "" }: PlaceQuery): string => `${country} ${key}`;
