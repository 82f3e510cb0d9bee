import type { JobMessage } from "../../api/job-socket.ts";

/** The last messages as they came, for developers. */
export interface RawMessage {
  seq: number;
  type: string;
  ts: string;
  /** In characters. */
  length: number;
  /** JSON; of a long one only its beginning. */
  text: string;
  /** How many items of `data` are left out of the text. */
  leftOut: number;
}

export const KEPT_RAW_MESSAGES = 200;
const LONGEST_TEXT = 16 * 1024;
const KEPT_ITEMS = 5;

export function rawMessage(message: JobMessage, text: string): RawMessage {
  const { seq, type, ts } = message;
  const rest = { seq, type, ts, length: text.length };
  if (text.length <= LONGEST_TEXT) return { ...rest, text, leftOut: 0 };
  const items = Array.isArray(message.data) ? (message.data as unknown[]) : [];
  // Written anew rather than cut off: a piece of a text keeps the whole of it in memory.
  const shortened = JSON.stringify({ ...message, data: items.slice(0, KEPT_ITEMS) });
  return { ...rest, text: shortened, leftOut: Math.max(0, items.length - KEPT_ITEMS) };
}

export const prettyText = ({ text }: RawMessage): string => JSON.stringify(JSON.parse(text), null, 2);
