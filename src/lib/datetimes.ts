/** Dates and times as text, and what is wrong with them in pydantic's words. */

const DATE = /^(\d{4})-(\d\d)-(\d\d)/;
const TIME = /^[Tt _](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(?:[Zz]|([+-])(\d\d):?(\d\d))?$/;

/** The parts of a date, and what a wrong character in each is called. */
const DATE_PARTS = [
  [/^\d{4}/, "invalid character in year"],
  [/^.{4}-/, "invalid date separator, expected `-`"],
  [/^.{5}\d\d/, "invalid character in month"],
  [/^.{7}-/, "invalid date separator, expected `-`"],
  [/^.{8}\d\d/, "invalid character in day"],
] as const;

const daysInMonth = (year: number, month: number): number => new Date(Date.UTC(year, month, 0)).getUTCDate();

/** Returns the milliseconds of RFC 3339 (without an offset: UTC), or of a date; undefined if there is no such time. */
export function millisecondsOf(text: string): number | undefined {
  if (dateError(text) !== undefined) return undefined;
  const dateMs = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  if (text.length === 10) return dateMs;
  const time = TIME.exec(text.slice(10));
  if (time === null) return undefined;
  const [hour = 0, minute = 0, second = 0, fraction = 0] = time.slice(1, 5).map((part) => Number(part ?? 0));
  const [offsetHours = 0, offsetMinutes = 0] = time.slice(6, 8).map((part) => Number(part ?? 0));
  if (hour > 23 || minute > 59 || second > 59 || offsetHours > 23 || offsetMinutes > 59) return undefined;
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (time[5] === "-" ? -1 : 1);
  return dateMs + (hour * 60 + minute) * 60_000 + second * 1_000 + Math.floor(fraction * 1_000) - offsetMs;
}

/**
 * Tells why a text is no datetime. pydantic tries the text as a date if it is no datetime, and reports that error: after a date that
 * is right, anything wrong with the time is "extra characters".
 */
export const datetimeError = (text: string): string =>
  dateError(text) ?? "unexpected extra characters at the end of the input";

/** Tells what is wrong with the date that a text begins with. */
function dateError(text: string): string | undefined {
  if (text.length < 10) return "input is too short";
  const date = DATE.exec(text);
  if (date === null) return DATE_PARTS.find(([part]) => !part.test(text))?.[1];
  const [year = 0, month = 0, day = 0] = date.slice(1).map(Number);
  if (month < 1 || month > 12) return "month value is outside expected range of 1-12";
  if (day < 1 || day > daysInMonth(year, month)) return "day value is outside expected range";
  return undefined;
}
