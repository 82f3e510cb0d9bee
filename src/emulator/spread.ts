import type { Geolocation } from "../schemas/agent.ts";
import type { AccessPointType } from "../schemas/emulator.ts";

/**
 * The positions of the access points around one location. Uses only arithmetic that IEEE 754 defines exactly, and no `Math.cos`: the same
 * request gives the same positions on every machine.
 */

/** Maximum distance from the location: LiFi within a building, WiFi on a campus, 5G in a district of a town. */
export const MAX_DISTANCE_M: Record<AccessPointType, number> = { "5G": 1_500, WiFi: 150, LiFi: 30 };

/** More than the real value anywhere on Earth, so that no position exceeds the maximum distance. */
const M_PER_DEGREE = 111_700;
const DEGREE_RAD = 0.017453292519943295;
/** Nearer to a pole, a disc would include the pole, and a metre to the east is many degrees. */
const POLAR_LATITUDE = 89;

/** Cosine and sine of the golden angle. Points at its multiples fill a disc evenly, for any number of points. */
const GOLDEN: Complex = { re: -0.7373688780783197, im: 0.6754902942615238 };
/** A third of a turn apart, so that the access points of two technologies do not coincide. */
const FIRST_DIRECTION: Record<AccessPointType, Complex> = {
  "5G": { re: 1, im: 0 },
  WiFi: { re: -0.5, im: 0.8660254037844386 },
  LiFi: { re: -0.5, im: -0.8660254037844386 },
};

interface Complex {
  re: number;
  im: number;
}

/** Returns the position of one of `count` access points of a technology around a location. */
export function spreadAround(centre: Geolocation, type: AccessPointType, index: number, count: number): Geolocation {
  const radiusM = MAX_DISTANCE_M[type] * Math.sqrt((index + 0.5) / count);
  const { latitude, longitude } = centre;
  if (Math.abs(latitude) > POLAR_LATITUDE) {
    // Move along the meridian, away from the pole. This works at the pole itself, too.
    const towardsEquator = latitude > 0 ? -1 : 1;
    return { latitude: rounded(latitude + (towardsEquator * radiusM) / M_PER_DEGREE), longitude };
  }
  const direction = times(FIRST_DIRECTION[type], power(GOLDEN, index));
  // A degree of longitude is longest at the edge nearest to the equator. With that length, no position is too far away.
  const maxCosine = cosine(Math.max(0, Math.abs(latitude) - MAX_DISTANCE_M[type] / M_PER_DEGREE));
  const northDegrees = (radiusM * direction.re) / M_PER_DEGREE;
  const eastDegrees = (radiusM * direction.im) / (M_PER_DEGREE * maxCosine);
  return { latitude: rounded(latitude + northDegrees), longitude: wrapped(rounded(longitude + eastDegrees)) };
}

/** Rounds to a centimetre. */
const rounded = (degrees: number): number => Math.round(degrees * 1e7) / 1e7;

const wrapped = (longitude: number): number => {
  if (longitude > 180) return rounded(longitude - 360);
  return longitude < -180 ? rounded(longitude + 360) : longitude;
};

const times = (a: Complex, b: Complex): Complex => ({
  re: a.re * b.re - a.im * b.im,
  im: a.re * b.im + a.im * b.re,
});

function power(base: Complex, exponent: number): Complex {
  let result: Complex = { re: 1, im: 0 };
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = times(result, square);
    square = times(square, square);
  }
  return result;
}

/** Returns the cosine by its Taylor series up to the 16th power, exact to eleven digits between the poles. */
function cosine(degrees: number): number {
  const radians = degrees * DEGREE_RAD;
  const square = radians * radians;
  let sum = 1;
  for (let n = 16; n > 0; n -= 2) sum = 1 - (sum * square) / (n * (n - 1));
  return sum;
}
