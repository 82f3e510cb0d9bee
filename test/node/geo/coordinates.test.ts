import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseLocation } from "../../../src/geo/geocode.ts";

const near = (latitude: number, longitude: number, digits = 4) => ({
  latitude: expect.closeTo(latitude, digits),
  longitude: expect.closeTo(longitude, digits),
});

const BRISTOL = near(51.4545, -2.5879);

describe("coordinates", () => {
  it.each([
    "51.4545,-2.5879",
    "51.4545, -2.5879",
    "51.4545 , -2.5879",
    "51.4545 -2.5879",
    "51.4545\t-2.5879",
    "51.4545;-2.5879",
    "51.4545; -2.5879",
    "51.4545/-2.5879",
    "  +51.4545,-2.5879\n",
    "51.4545,−2.5879",
    "51.4545,\u00a0-2.5879",
    "geo:51.4545,-2.5879",
    "GEO:51.4545,-2.5879,11",
    "geo:51.4545,-2.5879;u=35",
    "geo:51.4545,-2.5879;crs=WGS84;u=35",
    "+51.4545-002.5879/",
    "+51.4545-002.5879",
    "+51.4545-002.5879+11.5CRSWGS_84/",
    "+5127.27-00235.274/",
    "+512716.2-0023516.44/",
    `51°27'16.2"N 2°35'16.44"W`,
    `51°27'16.2"N, 2°35'16.44"W`,
    `51°27'16.2"N2°35'16.44"W`,
    "51° 27′ 16.2″ N, 2° 35′ 16.44″ W",
    "51°27’16.2”N 2°35’16.44”W",
    "51°27'16.2''N 2°35'16.44''W",
    "51º27'16.2\"n 2º35'16.44\"w",
    `N 51° 27' 16.2" W 2° 35' 16.44"`,
    `N51°27'16.2", W2°35'16.44"`,
    "51 27 16.2 N 2 35 16.44 W",
    "51 27 16.2N, 002 35 16.44W",
    "51:27:16.2N 2:35:16.44W",
    "51:27:16.2 -2:35:16.44",
    "51deg 27min 16.2sec N, 2deg 35min 16.44sec W",
    `51°27'16.2", -2°35'16.44"`,
    "N 51° 27.27' W 2° 35.274'",
    "51 27.27 N 2 35.274 W",
    "51.4545°N 2.5879°W",
    "51.4545° N, 2.5879° W",
    "51.4545N 2.5879W",
    "N51.4545 W2.5879",
    "51.4545°, -2.5879°",
    `2°35'16.44"W 51°27'16.2"N`,
    "W2.5879, N51.4545",
    "51.4545N, 2°35'16.44\"W",
  ])("are parsed from %j", (text) => {
    expect(parseLocation(text)).toEqual(BRISTOL);
  });

  it.each([
    ["0,0", 0, 0],
    ["-0, -0", 0, 0],
    ["90,180", 90, 180],
    ["-90,-180", -90, -180],
    [".5,-.25", 0.5, -0.25],
    ["5.,7.", 5, 7],
    ["33 51 31.0S151 12 40E", -33.858611, 151.211111],
    ["33 51 31 S, 151 12 40 E", -33.858611, 151.211111],
    ["33°51'31\"s 151°12'40\"e", -33.858611, 151.211111],
    ["-34.6037 -58.3816", -34.6037, -58.3816],
    ["-3436-05823/", -34.6, -58.383333],
    ["geo:-90,0", -90, 0],
  ])("are parsed from %j as %f, %f", (text, latitude, longitude) => {
    expect(parseLocation(text)).toEqual(near(latitude, longitude, 5));
  });

  const latitudes = fc.double({ min: -90, max: 90, noNaN: true });
  const longitudes = fc.double({ min: -180, max: 180, noNaN: true });

  it("are parsed from every decimal format", () => {
    fc.assert(
      fc.property(
        latitudes,
        longitudes,
        fc.constantFrom(",", ", ", " ", ";", "; ", " , "),
        fc.constantFrom("", "geo:"),
        (latitude, longitude, between, scheme) => {
          const text = `${scheme}${latitude.toFixed(7)}${scheme === "" ? between : ","}${longitude.toFixed(7)}`;
          expect(parseLocation(text)).toEqual(near(latitude, longitude, 6));
        },
      ),
    );
  });

  it("are parsed from ISO 6709", () => {
    const iso = (degrees: number, length: number): string =>
      `${degrees < 0 ? "-" : "+"}${Math.abs(degrees)
        .toFixed(7)
        .padStart(length + 8, "0")}`;
    fc.assert(
      fc.property(latitudes, longitudes, (latitude, longitude) => {
        expect(parseLocation(`${iso(latitude, 2)}${iso(longitude, 3)}/`)).toEqual(near(latitude, longitude, 6));
      }),
    );
  });

  it("are parsed from degrees, minutes and seconds with any marks", () => {
    const styles = [
      (d: number, m: number, s: string, letter: string) => `${d}°${m}'${s}"${letter}`,
      (d: number, m: number, s: string, letter: string) => `${d}° ${m}′ ${s}″ ${letter}`,
      (d: number, m: number, s: string, letter: string) => `${letter}${d} ${m} ${s}`,
      (d: number, m: number, s: string, letter: string) => `${d}:${m}:${s}${letter.toLowerCase()}`,
    ];
    fc.assert(
      fc.property(
        fc.tuple(fc.integer({ min: 0, max: 89 }), fc.nat(59), fc.nat(59_999), fc.constantFrom("N", "S")),
        fc.tuple(fc.integer({ min: 0, max: 179 }), fc.nat(59), fc.nat(59_999), fc.constantFrom("E", "W")),
        fc.constantFrom(...styles),
        fc.constantFrom(" ", ", ", "; "),
        (latitude, longitude, style, between) => {
          const text = [latitude, longitude].map(([d, m, ms, letter]) => style(d, m, (ms / 1_000).toFixed(3), letter));
          const value = ([d, m, ms, letter]: readonly [number, number, number, string]): number =>
            (d + m / 60 + ms / 3_600_000) * ("SW".includes(letter) ? -1 : 1);
          expect(parseLocation(text.join(between))).toEqual(near(value(latitude), value(longitude), 6));
        },
      ),
    );
  });
});

describe("an Open Location Code", () => {
  it.each([
    ["8FVC9G8F+6X", 47.3655625, 8.5249375],
    ["8fvc9g8f+6x", 47.3655625, 8.5249375],
    ["7FG49QCJ+2V", 20.3700625, 2.7821875],
    ["7FG49Q00+", 20.375, 2.775],
    ["8FVC0000+", 47.5, 8.5],
    ["8F000000+", 40, 10],
  ])("%s is decoded to the centre of its area", (code, latitude, longitude) => {
    expect(parseLocation(code)).toEqual(near(latitude, longitude, 6));
  });

  it("is decoded to within one cell of the place that it encodes", () => {
    const DIGITS = "23456789CFGHJMPQRVWX";
    fc.assert(
      fc.property(
        fc.double({ min: -90, max: 89.999, noNaN: true }),
        fc.double({ min: -180, max: 179.999, noNaN: true }),
        (latitude, longitude) => {
          // Pairs in base 20, from whole cells of 1/8000 degree.
          let [north, east] = [Math.floor((latitude + 90) * 8_000), Math.floor((longitude + 180) * 8_000)];
          let digits = "";
          for (let pair = 0; pair < 5; pair += 1) {
            digits = `${DIGITS[north % 20]}${DIGITS[east % 20]}${digits}`;
            [north, east] = [Math.floor(north / 20), Math.floor(east / 20)];
          }
          const found = parseLocation(`${digits.slice(0, 8)}+${digits.slice(8)}`);
          if (!("latitude" in found)) throw new Error("not decoded");
          expect(Math.abs(found.latitude - latitude)).toBeLessThan(1 / 8_000);
          expect(Math.abs(found.longitude - longitude)).toBeLessThan(1 / 8_000);
        },
      ),
    );
  });
});
