import type { Geolocation } from "../schemas/agent.ts";
import { decodeOpenLocationCode, looksLikeOpenLocationCode } from "./open-location-code.ts";

/** Places given by numbers, in the ways that people and machines write them. */

export type Reading = Geolocation | { refused: string };

/** A millionth of a degree is a decimetre; fewer digits would move what was given with seven. */
const DECIMALS = 7;

function inRange(latitude: number, longitude: number): Reading {
  if (!(Math.abs(latitude) <= 90)) return { refused: "latitude must be from -90 to 90" };
  if (!(Math.abs(longitude) <= 180)) return { refused: "longitude must be from -180 to 180" };
  // Adding zero turns -0 into 0.
  const rounded = (degrees: number): number => Number(degrees.toFixed(DECIMALS)) + 0;
  return { latitude: rounded(latitude), longitude: rounded(longitude) };
}

const NUMBER = String.raw`[+-]?(?:\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})`;
const PAIR = new RegExp(`^(${NUMBER})(?: ?[,;/|] ?| )(${NUMBER})$`);

function decimalPair(text: string): Reading | undefined {
  const [, latitude, longitude] = PAIR.exec(text) ?? [];
  return latitude === undefined ? undefined : inRange(Number(latitude), Number(longitude));
}

/** RFC 5870. A third number is the altitude; of the parameters only the reference system matters, and WGS 84 is the only one. */
const GEO_URI = new RegExp(`^geo:(${NUMBER}),(${NUMBER})(?:,${NUMBER.replace("{1,3}", "{1,7}")})?((?:;[^;]*)*)$`, "i");

function geoUri(text: string): Reading | undefined {
  if (!/^geo:/i.test(text)) return undefined;
  const [, latitude, longitude, parameters = ""] = GEO_URI.exec(text) ?? [];
  if (latitude === undefined) return { refused: "not a geo: URI with latitude and longitude" };
  const system = /;crs=([^;]*)/i.exec(parameters)?.[1];
  if (system !== undefined && system.toLowerCase() !== "wgs84") return { refused: "geo: URI must be in WGS 84" };
  return inRange(Number(latitude), Number(longitude));
}

/** ISO 6709, annex H: ±DD.D±DDD.D/, or with minutes, or with minutes and seconds; then perhaps an altitude and its system. */
const ISO_6709 =
  /^([+-])(\d{2}|\d{4}|\d{6})(\.\d{1,20})?([+-])(\d{3}|\d{5}|\d{7})(\.\d{1,20})?(?:[+-]\d{1,7}(?:\.\d{1,20})?(?:CRS[\w-]{1,20})?)?\/?$/;

function iso6709(text: string): Reading | undefined {
  const found = ISO_6709.exec(text);
  if (found === null) return undefined;
  const [, south, latitude = "", latitudeRest = "", west, longitude = "", longitudeRest = ""] = found;
  // Both have to be of the same kind: degrees, or with minutes, or with seconds too.
  if (longitude.length !== latitude.length + 1) return undefined;
  return signed(
    sexagesimal(split(latitude, 2, latitudeRest), south === "-"),
    sexagesimal(split(longitude, 3, longitudeRest), west === "-"),
  );
}

/** Degrees, minutes and seconds that are written without anything between them; the last one takes the decimals. */
function split(digits: string, degreesLength: number, decimals: string): string[] {
  const parts = [digits.slice(0, degreesLength)];
  for (let at = degreesLength; at < digits.length; at += 2) parts.push(digits.slice(at, at + 2));
  return parts.with(-1, `${parts.at(-1)}${decimals}`);
}

/** NaN where minutes or seconds reach sixty. */
function sexagesimal([degrees = "", minutes = "0", seconds = "0"]: string[], negative: boolean): number {
  if (!(Number(minutes) < 60 && Number(seconds) < 60)) return Number.NaN;
  const value = Number(degrees) + Number(minutes) / 60 + Number(seconds) / 3_600;
  return negative ? -value : value;
}

function signed(latitude: number, longitude: number): Reading {
  if (Number.isNaN(latitude) || Number.isNaN(longitude)) return { refused: "minutes and seconds must be below 60" };
  return inRange(latitude, longitude);
}

/**
 * One angle: an optional letter or sign, degrees, perhaps minutes, perhaps seconds, each with its mark or a blank or a colon
 * after it, an optional letter. A single letter for seconds is not understood: it could be South.
 */
const DEGREE_MARK = " ?(?:[°º˚]|deg(?:rees?)?)";
const MINUTE_MARK = " ?(?:['’‘′ʹ´]|min(?:utes?)?)";
const SECOND_MARK = ` ?(?:["”“″ʺ˝]|''|′′|’’|sec(?:onds?)?)`;
const WHOLE_OR_DECIMAL = String.raw`\d{1,2}(?:\.\d{0,20})?`;
const SECONDS = `(?:${MINUTE_MARK} ?|[ :])(${WHOLE_OR_DECIMAL})(?:${SECOND_MARK})?`;
const MINUTES = `(?:${DEGREE_MARK} ?|[ :])(${WHOLE_OR_DECIMAL})(?:${SECONDS}|${MINUTE_MARK})?`;
const angle = (letters: string): string =>
  String.raw`(?:([${letters}]) ?|([+-]))?(\d{1,3}(?:\.\d{0,20})?)(?:${MINUTES}|${DEGREE_MARK})?(?: ?([${letters}]))?`;
const BETWEEN = "( ?[,;/] ?| ?)";
const LATITUDE_FIRST = new RegExp(`^${angle("NS")}${BETWEEN}${angle("EW")}$`, "i");
const LONGITUDE_FIRST = new RegExp(`^${angle("EW")}${BETWEEN}${angle("NS")}$`, "i");

interface Angle {
  letter: string | undefined;
  parts: string[];
  degrees: number;
}

function degreesMinutesSeconds(text: string): Reading | undefined {
  // Something has to say that this is not a row of plain numbers.
  if (!/[NSEW°º˚'′’"″”:]/i.test(text)) return undefined;
  const found = LATITUDE_FIRST.exec(text) ?? LONGITUDE_FIRST.exec(text);
  if (found === null) return undefined;
  const [first, second] = [angleOf(found.slice(1, 7)), angleOf(found.slice(8, 14))];
  if (first === undefined || second === undefined) return undefined;
  // "51°27 2 35": where one ends and the other begins is anybody's guess, unless they are alike.
  const apart = found[7]?.trim() !== "" || found[6] !== undefined || (found[8] ?? found[9]) !== undefined;
  if (!apart && first.parts.length !== second.parts.length) return undefined;
  // Longitude may come first where letters tell which is which.
  const swapped = /[EW]/i.test(first.letter ?? "") || /[NS]/i.test(second.letter ?? "");
  if (swapped && (first.letter === undefined || second.letter === undefined)) return undefined;
  return swapped ? signed(second.degrees, first.degrees) : signed(first.degrees, second.degrees);
}

function angleOf(groups: (string | undefined)[]): Angle | undefined {
  const [before, sign, degrees = "", minutes, seconds, after] = groups;
  // "N 51 … S", "-51 … S": two that may contradict each other.
  if ((before ?? sign) !== undefined && after !== undefined) return undefined;
  const parts = [degrees, minutes, seconds].filter((part) => part !== undefined);
  // Only the last one has decimals.
  if (parts.slice(0, -1).some((part) => part.includes("."))) return undefined;
  const letter = before ?? after;
  return { letter, parts, degrees: sexagesimal(parts, sign === "-" || /[SW]/i.test(letter ?? "")) };
}

function openLocationCode(text: string): Reading | undefined {
  if (!looksLikeOpenLocationCode(text)) return undefined;
  const found = decodeOpenLocationCode(text);
  return found === undefined ? { refused: "not a full Open Location Code" } : inRange(found.latitude, found.longitude);
}

const FORMS = [geoUri, decimalPair, iso6709, openLocationCode, degreesMinutesSeconds];

/** `undefined` where the text is none of the forms with numbers. Takes text that is trimmed, with single blanks. */
export function readCoordinates(text: string): Reading | undefined {
  const upright = text.replace(/[−–]/g, "-");
  for (const form of FORMS) {
    const reading = form(upright);
    if (reading !== undefined) return reading;
  }
  return undefined;
}
