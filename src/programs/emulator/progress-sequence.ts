/**
 * An emulator says every few seconds how far a part has come, and is told whether the job is still wanted. Not every word is worth a
 * message, since a job keeps no more than 1,000 that nobody has read, for a day, and its end must find room among them. Reports of one
 * number are one message. A job has a message every five seconds at first, after an hour every forty, and one an hour at the least, so
 * that it is not taken for over: some 540 within its first day, and far fewer on any later one.
 */
const FIRST_EVERY_MS = 5_000;
const SLOWING = 100;
const AT_LEAST_EVERY_MS = 3_600_000;

/** @param parts that share the job's messages */
export function reportNumber(elapsedMs: number, parts: number): number {
  const number = SLOWING * Math.log1p(elapsedMs / (SLOWING * FIRST_EVERY_MS)) + elapsedMs / AT_LEAST_EVERY_MS;
  return Math.floor(number / parts);
}
