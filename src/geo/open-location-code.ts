import type { Geolocation } from "../schemas/agent.ts";

/** Decodes full Open Location Codes ("plus codes"). */

const DIGITS = "23456789CFGHJMPQRVWX";
const PAIRS_LENGTH = 10;
const GRID_ROWS = 5;
const GRID_COLUMNS = 4;

/** Pairs of digits, with a plus after the eighth. Zeros replace missing digits of a larger area. */
const SHAPE = /^(?=.{8}\+)(?:[2-9CFGHJMPQRVWX]{2}){1,4}(?:00){0,3}\+(?:[2-9CFGHJMPQRVWX]{2,7})?$/i;

export const looksLikeOpenLocationCode = (text: string): boolean => /^[02-9CFGHJMPQRVWX]{2,8}\+[0-9A-Z]*$/i.test(text);

/** Returns the centre of the area, or undefined if the code is not valid. */
export function decodeOpenLocationCode(text: string): Geolocation | undefined {
  if (!SHAPE.test(text) || /0\+./.test(text)) return undefined;
  const values = Array.from(text.toUpperCase().replace(/[+0]/g, ""), (digit) => DIGITS.indexOf(digit));
  let [south, west, height, width] = [-90, -180, 400, 400];
  for (let at = 0; at < Math.min(values.length, PAIRS_LENGTH); at += 2) {
    height /= DIGITS.length;
    width /= DIGITS.length;
    south += height * (values[at] ?? 0);
    west += width * (values[at + 1] ?? 0);
  }
  for (const value of values.slice(PAIRS_LENGTH)) {
    height /= GRID_ROWS;
    width /= GRID_COLUMNS;
    south += height * Math.floor(value / GRID_COLUMNS);
    west += width * (value % GRID_COLUMNS);
  }
  // The digits can encode up to 270° north and 220° east, which do not exist.
  if (south >= 90 || west >= 180) return undefined;
  return { latitude: south + height / 2, longitude: west + width / 2 };
}
