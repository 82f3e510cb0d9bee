import type { Geolocation } from "../schemas/agent.ts";
import { decodeOpenLocationCode, looksLikeOpenLocationCode } from "./open-location-code.ts";

/** Parses coordinates in the formats that people and programs commonly use. */

/** `reason` says why a text in one of the formats is not valid. */
export type ParsedCoordinates = Geolocation | { reason: string };

/** About a centimetre. Fewer decimals would move a place that was given with seven. */
const DECIMALS = 7;

function inRange(latitude: number, longitude: number): ParsedCoordinates {
  if (!(Math.abs(latitude) <= 90)) return { reason: "latitude must be from -90 to 90" };
  if (!(Math.abs(longitude) <= 180)) return { reason: "longitude must be from -180 to 180" };
  // Adding zero turns -0 into 0.
  const rounded = (degrees: number): number => Number(degrees.toFixed(DECIMALS)) + 0;
  return { latitude: rounded(latitude), longitude: rounded(longitude) };
}

const NUMBER = String.raw`[+-]?(?:\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})`;
const PAIR = new RegExp(`^(${NUMBER})(?: ?[,;/|] ?| )(${NUMBER})$`);

function decimalPair(text: string): ParsedCoordinates | undefined {
  const [, latitude, longitude] = PAIR.exec(text) ?? [];
  return latitude === undefined ? undefined : inRange(Number(latitude), Number(longitude));
}

/** RFC 5870. A third number is the altitude. The only relevant parameter is the reference system, which must be WGS 84. */
const GEO_URI = new RegExp(`^geo:(${NUMBER}),(${NUMBER})(?:,${NUMBER.replace("{1,3}", "{1,7}")})?((?:;[^;]*)*)$`, "i");

function geoUri(text: string): ParsedCoordinates | undefined {
  if (!/^geo:/i.test(text)) return undefined;
  const [, latitude, longitude, parameters = ""] = GEO_URI.exec(text) ?? [];
  if (latitude === undefined) return { reason: "not a geo: URI with latitude and longitude" };
  const system = /;crs=([^;]*)/i.exec(parameters)?.[1];
  if (system !== undefined && system.toLowerCase() !== "wgs84") return { reason: "geo: URI must be in WGS 84" };
  return inRange(Number(latitude), Number(longitude));
}

/** ISO 6709, annex H: ±DD.D±DDD.D/, optionally with minutes, or with minutes and seconds, then optionally an altitude and its system. */
const ISO_6709 =
  /^([+-])(\d{2}|\d{4}|\d{6})(\.\d{1,20})?([+-])(\d{3}|\d{5}|\d{7})(\.\d{1,20})?(?:[+-]\d{1,7}(?:\.\d{1,20})?(?:CRS[\w-]{1,20})?)?\/?$/;

function iso6709(text: string): ParsedCoordinates | undefined {
  const found = ISO_6709.exec(text);
  if (found === null) return undefined;
  const [, latitudeSign, latitude = "", latitudeDecimals = "", longitudeSign, longitude = "", longitudeDecimals = ""] =
    found;
  // Both must have the same precision: degrees, minutes or seconds.
  if (longitude.length !== latitude.length + 1) return undefined;
  return fromDegrees(
    toDegrees(split(latitude, 2, latitudeDecimals), latitudeSign === "-"),
    toDegrees(split(longitude, 3, longitudeDecimals), longitudeSign === "-"),
  );
}

/** Splits degrees, minutes and seconds that are written without separators. The decimals belong to the last component. */
function split(digits: string, degreesLength: number, decimals: string): string[] {
  const components = [digits.slice(0, degreesLength)];
  for (let at = degreesLength; at < digits.length; at += 2) components.push(digits.slice(at, at + 2));
  return components.with(-1, `${components.at(-1)}${decimals}`);
}

/** Returns the degrees, or NaN if minutes or seconds are 60 or more. */
function toDegrees([degrees = "", minutes = "0", seconds = "0"]: string[], negative: boolean): number {
  if (!(Number(minutes) < 60 && Number(seconds) < 60)) return Number.NaN;
  const value = Number(degrees) + Number(minutes) / 60 + Number(seconds) / 3_600;
  return negative ? -value : value;
}

function fromDegrees(latitude: number, longitude: number): ParsedCoordinates {
  if (Number.isNaN(latitude) || Number.isNaN(longitude)) return { reason: "minutes and seconds must be below 60" };
  return inRange(latitude, longitude);
}

/**
 * One angle: an optional letter or sign, degrees, optional minutes, optional seconds and an optional letter. A mark, a space or a colon
 * follows each number. The letter "s" is not a mark for seconds, because it could mean south.
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
  components: string[];
  degrees: number;
}

function degreesMinutesSeconds(text: string): ParsedCoordinates | undefined {
  // A list of plain numbers is not an angle: requires a letter or a mark.
  if (!/[NSEW°º˚'′’"″”:]/i.test(text)) return undefined;
  const found = LATITUDE_FIRST.exec(text) ?? LONGITUDE_FIRST.exec(text);
  if (found === null) return undefined;
  const [first, second] = [angleOf(found.slice(1, 7)), angleOf(found.slice(8, 14))];
  if (first === undefined || second === undefined) return undefined;
  // "51°27 2 35" is ambiguous: without a separator both angles must have the same number of components.
  const areSeparate = found[7]?.trim() !== "" || found[6] !== undefined || (found[8] ?? found[9]) !== undefined;
  if (!areSeparate && first.components.length !== second.components.length) return undefined;
  // Longitude may be first if letters identify both.
  const isSwapped = /[EW]/i.test(first.letter ?? "") || /[NS]/i.test(second.letter ?? "");
  if (isSwapped && (first.letter === undefined || second.letter === undefined)) return undefined;
  return isSwapped ? fromDegrees(second.degrees, first.degrees) : fromDegrees(first.degrees, second.degrees);
}

function angleOf(groups: (string | undefined)[]): Angle | undefined {
  const [before, sign, degrees = "", minutes, seconds, after] = groups;
  // "N 51 … S" and "-51 … S" have two directions that may contradict each other.
  if ((before ?? sign) !== undefined && after !== undefined) return undefined;
  const components = [degrees, minutes, seconds].filter((component) => component !== undefined);
  // Only the last component may have decimals.
  if (components.slice(0, -1).some((component) => component.includes("."))) return undefined;
  const letter = before ?? after;
  return { letter, components, degrees: toDegrees(components, sign === "-" || /[SW]/i.test(letter ?? "")) };
}

function openLocationCode(text: string): ParsedCoordinates | undefined {
  if (!looksLikeOpenLocationCode(text)) return undefined;
  const found = decodeOpenLocationCode(text);
  return found === undefined ? { reason: "not a full Open Location Code" } : inRange(found.latitude, found.longitude);
}

const FORMATS = [geoUri, decimalPair, iso6709, openLocationCode, degreesMinutesSeconds];

/** Returns undefined if the text is in none of the formats. The text must be trimmed, with single spaces. */
export function parseCoordinates(text: string): ParsedCoordinates | undefined {
  const withHyphens = text.replace(/[−–]/g, "-");
  for (const parse of FORMATS) {
    const coordinates = parse(withHyphens);
    if (coordinates !== undefined) return coordinates;
  }
  return undefined;
}
