/** Parses dates and times, and describes invalid ones in the words of pydantic v2, which clients match on. */

const DATE = /^(\d{4})-(\d\d)-(\d\d)/;
const TIME = /^[Tt _](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?:[Zz]|([+-])(\d\d):?(\d\d))?$/;

/** Each pattern covers the date up to one component. The first that fails gives the message. */
const DATE_PATTERNS = [
  [/^\d{4}/, "invalid character in year"],
  [/^.{4}-/, "invalid date separator, expected `-`"],
  [/^.{5}\d\d/, "invalid character in month"],
  [/^.{7}-/, "invalid date separator, expected `-`"],
  [/^.{8}\d\d/, "invalid character in day"],
] as const;

const daysInMonth = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();

/**
 * Returns the milliseconds since 1970 of an RFC 3339 time or a date, in UTC if there is no offset. Returns undefined if the text is
 * neither, or if no such time exists.
 */
export function millisecondsOf(text: string): number | undefined {
  if (dateError(text) !== undefined) return undefined;
  const dateMs = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  if (text.length === 10) return dateMs;
  const time = TIME.exec(text.slice(10));
  if (time === null) return undefined;
  const [hour = 0, minute = 0, second = 0, fraction = 0] = time.slice(1, 5).map((digits) => Number(digits ?? 0));
  const [offsetHours = 0, offsetMinutes = 0] = time.slice(6, 8).map((digits) => Number(digits ?? 0));
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return undefined;
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (time[5] === "-" ? -1 : 1);
  return dateMs + (hour * 60 + minute) * 60_000 + second * 1_000 + Math.floor(fraction * 1_000) - offsetMs;
}

/**
 * Returns why a text is not a datetime. pydantic parses such a text again as a date and reports that second error. So after a valid
 * date, any error in the time is "extra characters".
 */
export const datetimeError = (text: string): string =>
  dateError(text) ?? "unexpected extra characters at the end of the input";

/** Returns the error in the date at the start of a text, or undefined if it is valid. */
function dateError(text: string): string | undefined {
  if (text.length < 10) return "input is too short";
  const date = DATE.exec(text);
  if (date === null) return DATE_PATTERNS.find(([pattern]) => !pattern.test(text))?.[1];
  const [year = 0, month = 0, day = 0] = date.slice(1).map(Number);
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  if (day < 1 || day > daysInMonth(year, month)) return "day value is outside expected range";
  return undefined;
}
