import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Names of the world's towns, several of them for one town. `src/programs/gazetteer/load.ts` fills it; the Worker only reads it. */
export const gazetteer = sqliteTable(
  "gazetteer",
  {
    /** A name of the place, as `placeKey` makes it. */
    key: text("key").notNull(),
    /** Of several places with one name, the one with the greatest is meant: inhabitants, and more for a city's own name. */
    weight: integer("weight").notNull(),
    /** GeoNames' number of the place. */
    placeId: integer("place_id").notNull(),
    /** Its own name, to be shown. */
    name: text("name").notNull(),
    /** ISO 3166-1 alpha-2. */
    country: text("country").notNull(),
    latitude: real("latitude").notNull(),
    longitude: real("longitude").notNull(),
    edition: integer("edition").notNull(),
  },
  // Read backwards, it gives the places of one name by falling weight.
  (table) => [primaryKey({ columns: [table.key, table.weight, table.placeId] })],
);

/** Which editions of the data are there in full. */
export const gazetteerEditions = sqliteTable("gazetteer_editions", {
  edition: integer("edition").primaryKey(),
  loadedAt: integer("loaded_at", { mode: "timestamp_ms" }).notNull(),
});
