import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countryCode } from "../../../src/geo/countries.ts";
import { type Gazetteer, geocode, parseLocation } from "../../../src/geo/geocode.ts";
import { normalizePlaceName } from "../../../src/geo/normalize-name.ts";
import { decodeOpenLocationCode } from "../../../src/geo/open-location-code.ts";
import { type GazetteerRow, gazetteerRows, rowsOf } from "../../../src/programs/gazetteer/rows.ts";

/** The rows that are loaded into the database, in the same order. */
const rowsByKey = Map.groupBy(gazetteerRows(), ({ key }) => key);
let lastQueries: { key: string; country?: string | undefined }[] = [];
const gazetteer: Gazetteer = {
  findAll: async (queries) => {
    lastQueries = [...queries];
    return queries.map(({ key, country }) =>
      rowsByKey.get(key)?.findLast((row) => country === undefined || row.country === country),
    );
  },
};
const resolve = async (text: string) => (await geocode([text], gazetteer))[0];

describe("coordinates", () => {
  it.each([
    ["90.0001,0", /latitude must be/],
    ["0,180.0001", /longitude must be/],
    ["-91 0", /latitude must be/],
    ["999,999", /latitude must be/],
    ["geo:95,0", /latitude must be/],
    ["+95.0+000.0/", /latitude must be/],
    [`90°0'1"N 0°0'0"E`, /latitude must be/],
    ["181°E 10°N", /longitude must be/],
    [`51°60'00"N 2°00'00"W`, /below 60/],
    [`51°00'60"N 2°00'00"W`, /below 60/],
    ["+516000-0023516/", /below 60/],
    ["geo:51.4545", /geo: URI/],
    ["geo:fifty,two", /geo: URI/],
    ["geo:51.4545,-2.5879;crs=nad27", /WGS 84/],
    ["51.4545", /not a location/],
    ["51.4545,", /not a location/],
    ["51.4545,-2.5879,0", /not a location/],
    ["51,4545,-2,5879", /not a location/],
    ["1e1,1e1", /not a location|no such place/],
    ["NaN,NaN", /not a location|no such place/],
    ["Infinity,0", /not a location|no such place/],
    ["0x10,0x10", /not a location|no such place/],
    ["1234,5", /not a location/],
    ["--51,2", /not a location/],
    ["51 27 16 2 35 16", /not a location/],
    ["51°27 2 35", /not a location/],
    ["N51.4 S2.5", /not a location|no such place/],
    ["N 51 27 16 S 2 35 16 W", /not a location|no such place/],
    ["-51°27'16\"S 2°35'16\"W", /not a location|no such place/],
    ["51.5°27'N 2°35'W", /not a location|no such place/],
    ["0530N 1230E", /not a location|no such place/],
    ["+51.4545-02.5879/", /not a location/],
    ["+5127-002/", /not a location/],
  ])("are rejected: %j", async (text, reason) => {
    expect(await resolve(text)).toEqual({ reason: expect.stringMatching(reason) });
  });
});

describe("an Open Location Code", () => {
  it.each([
    "9G8F+6X",
    "8FVC9G8F6X",
    "8FVC9G8F+6",
    "8FVC9G00+6X",
    "8F0C0000+",
    "00000000+",
    "8FVC9G8F+6XQ23456",
    "XXXXXXXX+XX",
  ])("is rejected if it is short, malformed or outside the world: %s", async (code) => {
    expect(decodeOpenLocationCode(code)).toBeUndefined();
    expect(await resolve(code)).toHaveProperty("reason");
  });
});

describe("the name of a place", () => {
  it.each([
    ["Bristol", "Bristol, GB", 51.455, -2.597],
    ["Bristol, GB", "Bristol, GB", 51.455, -2.597],
    ["bristol, uk", "Bristol, GB", 51.455, -2.597],
    ["  BRISTOL ,  U.K. ", "Bristol, GB", 51.455, -2.597],
    ["Bristol, GBR", "Bristol, GB", 51.455, -2.597],
    ["Bristol, England, UK", "Bristol, GB", 51.455, -2.597],
    ["Bristol, USA", "Bristol, US", 41.672, -72.949],
    ["London, England", "London, GB", 51.509, -0.126],
    ["London, Canada", "London, CA", 42.983, -81.233],
    ["Zürich", "Zürich, CH", 47.367, 8.55],
    ["Zurich", "Zürich, CH", 47.367, 8.55],
    ["Zu\u0308rich, Schweiz", "Zürich, CH", 47.367, 8.55],
    ["São Paulo", "São Paulo, BR", -23.548, -46.636],
    ["Lodz", "Łódź, PL", 51.771, 19.474],
    ["Tromso, Norway", "Tromsø, NO", 69.649, 18.955],
    ["st louis, united states", "St. Louis, US", 38.627, -90.198],
    ["Washington, D.C.", "Washington, D.C., US", 38.895, -77.036],
    ["München", "Munich, DE", 48.137, 11.575],
    ["東京", "Tokyo, JP", 35.69, 139.692],
    ["Saint-Denis, Réunion", "Saint-Denis, RE", -20.882, 55.45],
    ["Geneva", "Genève, CH", 46.202, 6.146],
  ])("%j is resolved to %s", async (text, place, latitude, longitude) => {
    expect(await resolve(text)).toEqual({
      latitude: expect.closeTo(latitude, 2),
      longitude: expect.closeTo(longitude, 2),
      place,
    });
  });

  it.each([
    ["Roma", "Rome, IT"],
    ["Cologne", "Köln, DE"],
    ["Islamabad", "Islamabad, PK"],
    ["Zaragoza", "Zaragoza, ES"],
    ["Victoria", "Victoria, CA"],
    ["New York", "New York City, US"],
    ["Cambridge", "Cambridge, GB"],
    ["Perth", "Perth, AU"],
  ])("%s is resolved to the most prominent of several places: %s", async (text, place) => {
    expect(await resolve(text)).toMatchObject({ place });
  });

  it.each([
    "Nowhereville",
    "Paris, Texas",
    "Bristol, Japan",
    "constructor",
    "__proto__",
    "null",
    "Bristol%",
    "*",
    "#",
    "+",
  ])("is rejected if it is unknown: %s", async (text) => {
    expect(await resolve(text)).toHaveProperty("reason");
  });

  it("is queried once, together with all others, and the results keep the order of the texts", async () => {
    const results = await geocode(["Bristol", "1,2", "Oxford", "Bristol", "bristol", "nope"], gazetteer);
    expect(lastQueries.map(({ key }) => key)).toEqual(["bristol", "oxford", "nope"]);
    expect(results).toEqual([
      expect.objectContaining({ place: "Bristol, GB" }),
      { latitude: 1, longitude: 2 },
      expect.objectContaining({ place: "Oxford, GB" }),
      expect.objectContaining({ place: "Bristol, GB" }),
      expect.objectContaining({ place: "Bristol, GB" }),
      { reason: "no such place in the gazetteer" },
    ]);
  });

  it("is not queried if all texts are coordinates", async () => {
    const none: Gazetteer = { findAll: () => Promise.reject(new Error()) };
    expect(await geocode(["1,2", "geo:3,4"], none)).toHaveLength(2);
  });
});

describe("a country", () => {
  it.each([
    ["GB", "GB"],
    ["gbr", "GB"],
    ["uk", "GB"],
    ["U.K.", "GB"],
    ["Scotland", "GB"],
    ["usa", "US"],
    ["U.S.A.", "US"],
    ["the united states of america", "US"],
    ["The Netherlands", "NL"],
    ["Holland", "NL"],
    ["Czech Republic", "CZ"],
    ["Türkiye", "TR"],
    ["turkey", "TR"],
    ["Cote d’Ivoire", "CI"],
    ["Saint Lucia", "LC"],
    ["St. Lucia", "LC"],
    ["Bosnia and Herzegovina", "BA"],
    ["Bosnia & Herzegovina", "BA"],
    ["South Korea", "KR"],
    ["Österreich", "AT"],
    ["Kosovo", "XK"],
    ["Narnia", undefined],
    ["", undefined],
    ["constructor", undefined],
  ])("%j has the code %s", (name, code) => {
    expect(countryCode(name)).toBe(code);
  });

  it("is known for every place in the gazetteer", () => {
    const countries = new Set([...rowsByKey.values()].flat().map(({ country }) => country));
    const unknown = [...countries].filter((country) => countryCode(country) !== country);
    // Research stations, which have no network to emulate.
    expect(unknown.sort()).toEqual(["AQ", "TF"]);
  });
});

describe("the rows of the gazetteer", () => {
  it("are valid, with one row per key and place", () => {
    const rows: GazetteerRow[] = [...rowsByKey.values()].flat();
    expect(rows.length).toBeGreaterThan(200_000);
    const broken = rows.filter(
      ({ key, name, country, latitude, longitude, weight, placeId }) =>
        key !== normalizePlaceName(key) ||
        !/^[A-Z]{2}$/.test(country) ||
        name === "" ||
        !(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180) ||
        !(Number.isSafeInteger(weight) && weight >= 0 && Number.isSafeInteger(placeId)),
    );
    expect(broken).toEqual([]);
    expect(new Set(rows.map(({ key, placeId }) => `${placeId} ${key}`)).size).toBe(rows.length);
  });

  it("omit historical places and empty lines", () => {
    const line = (feature: string): string =>
      ["1", "Old Town", "Old Town", "", "1", "2", "P", feature, "GB", "", "", "", "", "", "2000"].join("\t");
    expect(rowsOf(line("PPL"))).toEqual([
      { key: "old town", weight: 8_000, placeId: 1, name: "Old Town", country: "GB", latitude: 1, longitude: 2 },
    ]);
    expect(rowsOf(line("PPLH"))).toEqual([]);
    expect(rowsOf("")).toEqual([]);
  });
});

describe("hostile input", () => {
  it.each([
    ["empty", ""],
    ["blank", " "],
    ["NUL", "\u0000"],
    ["a name with NUL", "Bristol\u0000"],
    ["numbers with NUL", "51.4545,\u0000-2.5879"],
    ["a lone surrogate", "\ud800"],
    ["a name with a lone surrogate", "Bristol\udfff"],
    ["a terminal escape sequence", "\u001b[31mBristol"],
    ["a symbol", "💥"],
    ["100 KB", "x".repeat(100_000)],
    ["100 KB of digits", "1".repeat(100_000)],
    ["100 KB of decimals", `51.${"4".repeat(100_000)},2`],
    ["100 KB of symbols", "🏙".repeat(50_000)],
    ["100 KB of parameters", `geo:1,2${";".repeat(100_000)}`],
    ["100 KB of blanks", " ".repeat(100_000)],
    ["a wildcard", "agent/+/command"],
    ["a path", "../../etc/passwd"],
    ["SQL", "' OR 1=1 --"],
  ])("is rejected: %s", async (_, text) => {
    expect(await resolve(text)).toEqual({ reason: expect.any(String) });
  });

  it("never throws, is parsed quickly, and is never part of the reason", () => {
    const pieces = fc.constantFrom(
      ..."0123456789.,;:/+-°'\"′″ NSEWnsew",
      "geo:",
      "deg",
      "min",
      "sec",
      "\u0000",
      "\ud800",
      "é",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 300 }),
          fc.array(pieces, { maxLength: 200 }).map((parts) => parts.join("")),
        ),
        (text) => {
          const started = performance.now();
          const found = parseLocation(text);
          expect(performance.now() - started).toBeLessThan(1_000);
          if ("reason" in found) expect(found.reason).toMatch(/^[ -~]{1,120}$/);
          if ("latitude" in found) {
            expect(Math.abs(found.latitude)).toBeLessThanOrEqual(90);
            expect(Math.abs(found.longitude)).toBeLessThanOrEqual(180);
          }
          if ("query" in found) expect(found.query.key).toBe(normalizePlaceName(found.query.key));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
