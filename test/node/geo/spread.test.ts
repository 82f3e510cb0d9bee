import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planSpinup } from "../../../src/emulator/plan.ts";
import { MAX_DISTANCE_M, spreadAround } from "../../../src/emulator/spread.ts";
import type { Location } from "../../../src/geo/geocode.ts";
import { ACCESS_POINT_TYPES, type AccessPointType } from "../../../src/schemas/emulator.ts";

interface Point {
  latitude: number;
  longitude: number;
}

const BRISTOL = { latitude: 51.45523, longitude: -2.59665 };

/** Returns the great-circle distance. */
function distanceM(a: Point, b: Point): number {
  const rad = (degrees: number) => (degrees * Math.PI) / 180;
  const north = Math.sin(rad(b.latitude - a.latitude) / 2) ** 2;
  const east = Math.sin(rad(b.longitude - a.longitude) / 2) ** 2;
  const h = north + Math.cos(rad(a.latitude)) * Math.cos(rad(b.latitude)) * east;
  return 2 * 6_371_009 * Math.asin(Math.sqrt(h));
}

const around = (centre: Point, type: AccessPointType, count: number): Point[] =>
  Array.from({ length: count }, (_, index) => spreadAround(centre, type, index, count));
const distinct = (points: readonly Point[]): number =>
  new Set(points.map(({ latitude, longitude }) => `${latitude} ${longitude}`)).size;

describe("spreading access points around a location", () => {
  it("returns valid places within the range of the technology, anywhere on Earth", () => {
    const latitude = fc.oneof(
      fc.double({ min: -90, max: 90, noNaN: true }),
      fc.constantFrom(-90, 90, 89, -89, 89.999, 0),
    );
    const longitude = fc.oneof(
      fc.double({ min: -180, max: 180, noNaN: true }),
      fc.constantFrom(-180, 180, 179.99999, 0),
    );
    fc.assert(
      fc.property(
        fc.record({ latitude, longitude }),
        fc.constantFrom(...ACCESS_POINT_TYPES),
        fc.integer({ min: 1, max: 10_000 }),
        fc.nat(),
        (centre, type, count, pick) => {
          const place = spreadAround(centre, type, pick % count, count);
          expect(Math.abs(place.latitude)).toBeLessThanOrEqual(90);
          expect(Math.abs(place.longitude)).toBeLessThanOrEqual(180);
          expect(distanceM(centre, place)).toBeLessThanOrEqual(MAX_DISTANCE_M[type]);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it.each(ACCESS_POINT_TYPES)("returns distinct places for ten thousand %s access points of one location", (type) => {
    const places = around(BRISTOL, type, 10_000);
    expect(distinct(places)).toBe(10_000);
    // Even distribution: each half of the disc, by area and by direction, contains half of the places.
    const inner = places.filter((place) => distanceM(BRISTOL, place) < MAX_DISTANCE_M[type] * Math.SQRT1_2);
    expect(inner.length / places.length).toBeCloseTo(0.5, 1);
    expect(places.filter(({ latitude }) => latitude > BRISTOL.latitude).length / places.length).toBeCloseTo(0.5, 2);
  });

  it("returns the same places on every machine", () => {
    expect(around(BRISTOL, "5G", 3)).toEqual([
      { latitude: 51.4607123, longitude: -2.59665 },
      { latitude: 51.4482282, longitude: -2.5863594 },
      { latitude: 51.4563017, longitude: -2.616242 },
    ]);
  });
});

describe("the plan of a spin-up", () => {
  const located = new Map<string, Location>([
    ["Bristol", { ...BRISTOL, place: "Bristol, GB" }],
    ["51.45523,-2.59665", BRISTOL],
    ["1,1", { latitude: 1, longitude: 1 }],
  ]);
  const spec = (access_point_type: AccessPointType, num_access_points: number, locations: string[]) => ({
    access_point_type,
    num_access_points,
    locations,
    num_devices: 1,
    duration: 60,
  });
  const plan = (...emulators: ReturnType<typeof spec>[]) =>
    planSpinup({ emulators }, "0123abcd-0000-4000-8000-000000000000", located);
  const placesOf = ({ agents }: ReturnType<typeof plan>) =>
    agents.map(({ configuration }) => configuration.geolocation as Point);

  it("puts the only access point of a location exactly there", () => {
    expect(placesOf(plan(spec("WiFi", 2, ["Bristol", "1,1"])))).toEqual([BRISTOL, { latitude: 1, longitude: 1 }]);
  });

  it("gives each access point a distinct place, across specifications and names of one location", () => {
    const places = placesOf(
      plan(
        spec("5G", 1, ["Bristol"]),
        spec("WiFi", 1, ["Bristol"]),
        spec("LiFi", 1, ["51.45523,-2.59665"]),
        spec("WiFi", 50, ["Bristol", "51.45523,-2.59665"]),
        spec("WiFi", 50, ["Bristol"]),
      ),
    );
    expect(distinct(places)).toBe(103);
  });

  it("sends the emulator the place of the agent's configuration and the site of the access point", () => {
    const planned = plan(spec("5G", 2, ["Bristol", "1,1"]), spec("WiFi", 4, ["51.45523,-2.59665", "1,1"]));
    const [message] = planned.messages(() => "secret");
    const sent = message?.emulators.flatMap(({ agents }) => agents) ?? [];
    expect(sent.map(({ latitude, longitude }) => ({ latitude, longitude }))).toEqual(placesOf(planned));
    const [bristol, other] = ["51.45523,-2.59665", "1,1"];
    expect(sent.map(({ site }) => site)).toEqual([bristol, other, bristol, other, bristol, other]);
  });
});
