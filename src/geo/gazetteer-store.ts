import { sql } from "drizzle-orm";
import * as z from "zod";
import { Unavailable } from "../lib/errors.ts";
import { type Database, query } from "../storage/libsql.ts";
import { gazetteer, gazetteerEditions } from "./gazetteer-tables.ts";
import type { Place, PlaceQuery } from "./geocode.ts";
import type { PlaceNames } from "./suggest.ts";

/** The stack loads the towns in the background after its first start. Before all are loaded, a name could match the wrong town. */
const IS_LOADED = sql`exists (select 1 from ${gazetteerEditions})`;

const FoundPlace = z.object({ name: z.string(), country: z.string(), latitude: z.number(), longitude: z.number() });
const FoundRow = z.object({
  position: z.int(),
  isLoaded: z.int().transform(Boolean),
  place: z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(FoundPlace)
    .nullable(),
});

/** Sorts after every other character of a key. */
const LAST_CHARACTER = "\u{10FFFF}";
/** Number of names to read for a prefix, by descending weight. A town has several names, so this yields fewer towns. */
const MAX_NAMES = 400;
/** Keeps each statement far below its time limit. */
const QUERIES_PER_STATEMENT = 1_000;

export function createGazetteer(database: Database): PlaceNames {
  async function findAll(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]> {
    const places: (Place | undefined)[] = [];
    for (let from = 0; from < queries.length; from += QUERIES_PER_STATEMENT)
      places.push(...(await findSome(queries.slice(from, from + QUERIES_PER_STATEMENT))));
    return places;
  }

  async function findSome(queries: readonly PlaceQuery[]): Promise<(Place | undefined)[]> {
    const rows = await query(
      database.all(sql`
        select queries.key as position, (
          select json_object('name', name, 'country', country, 'latitude', latitude, 'longitude', longitude)
          from ${gazetteer}
          where ${gazetteer.key} = queries.value ->> 'key'
            and (queries.value ->> 'country' is null or country = queries.value ->> 'country')
          order by weight desc
          limit 1) as place,
          ${IS_LOADED} as isLoaded
        from json_each(${JSON.stringify(queries)}) as queries`),
    );
    const found = FoundRow.array().parse(rows);
    if (found.some(({ isLoaded }) => !isLoaded)) throw notLoaded();
    const places = new Map(found.map(({ position, place }) => [position, place ?? undefined]));
    return queries.map((_, index) => places.get(index));
  }

  const isLoaded = async (): Promise<boolean> =>
    (await query(database.select().from(gazetteerEditions).limit(1))).length > 0;

  return {
    findAll,
    async findByPrefix({ key, country }, limit) {
      const rows = await query(
        database.all(sql`
          select name, country, latitude, longitude, max(weight) as weight
          from (
            select * from ${gazetteer}
            where ${IS_LOADED} and ${gazetteer.key} >= ${key} and ${gazetteer.key} < ${key + LAST_CHARACTER}
              and (${country ?? null} is null or country = ${country ?? null})
            order by ${gazetteer.weight} desc
            limit ${MAX_NAMES})
          group by place_id
          order by weight desc
          limit ${limit}`),
      );
      if (rows.length === 0 && !(await isLoaded())) throw notLoaded();
      return z.array(FoundPlace).parse(rows);
    },
  };
}

const notLoaded = (): Unavailable =>
  new Unavailable("list of towns, which the service loads after its first start,", new Error("No edition is complete"));
