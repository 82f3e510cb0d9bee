import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Names of the world's towns. A town may have several. `src/programs/gazetteer/load.ts` fills the table, the Worker only reads it. */
export const gazetteer = sqliteTable(
  "gazetteer",
  {
    /** A name of the place, normalized by `normalizePlaceName`. */
    key: text("key").notNull(),
    /** Ranks the places of one name: the number of inhabitants, higher for a city's primary name. The highest weight wins. */
    weight: integer("weight").notNull(),
    /** Id of the place in GeoNames. */
    placeId: integer("place_id").notNull(),
    /** The name to display. */
    name: text("name").notNull(),
    /** ISO 3166-1 alpha-2. */
    country: text("country").notNull(),
    latitude: real("latitude").notNull(),
    longitude: real("longitude").notNull(),
    edition: integer("edition").notNull(),
  },
  // A backward scan of the key returns the places of one name by descending weight.
  (table) => [primaryKey({ columns: [table.key, table.weight, table.placeId] })],
);

/** Editions of the data that are completely loaded. */
export const gazetteerEditions = sqliteTable("gazetteer_editions", {
  edition: integer("edition").primaryKey(),
  loadedAt: integer("loaded_at", { mode: "timestamp_ms" }).notNull(),
});
