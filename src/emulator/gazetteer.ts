import { sql } from "drizzle-orm";
import * as z from "zod";
import { type Database, reach } from "../accounts/database.ts";
import type { Gazetteer, Place, PlaceQuery } from "./locations.ts";
import { placeKey } from "./place-key.ts";
import { gazetteer } from "./tables.ts";

const Answer = z.object({
  position: z.int(),
  found: z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(z.object({ name: z.string(), country: z.string(), latitude: z.number(), longitude: z.number() }))
    .nullable(),
});

/** So many names in one statement stay far below the time that a statement has. */
const QUERIES_PER_STATEMENT = 1_000;

export function createGazetteer(database: Database): Gazetteer {
  async function findAll(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]> {
    const places: (Place | undefined)[] = [];
    for (let from = 0; from < queries.length; from += QUERIES_PER_STATEMENT)
      places.push(...(await findSome(queries.slice(from, from + QUERIES_PER_STATEMENT))));
    return places;
  }

  async function findSome(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]> {
    const rows = await reach(
      database.all(sql`
        select asked.key as position, (
          select json_object('name', name, 'country', country, 'latitude', latitude, 'longitude', longitude)
          from ${gazetteer}
          where ${gazetteer.key} = asked.value ->> 'key'
            and (asked.value ->> 'country' is null or country = asked.value ->> 'country')
          order by weight desc
          limit 1) as found
        from json_each(${JSON.stringify(queries)}) as asked`),
    );
    const places = new Map(
      Answer.array()
        .parse(rows)
        .map(({ position, found }) => [position, found ?? undefined]),
    );
    return queries.map((_, index) => places.get(index));
  }

  return {
    findAll,
    async find(name, country) {
      const [place] = await findAll([{ key: placeKey(name), country }]);
      return place;
    },
  };
}
