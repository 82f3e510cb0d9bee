import type { JobMessage } from "../../api/job-socket.ts";

/** A message as it was received, for developers. */
export interface RawMessage {
  seq: number;
  type: string;
  ts: string;
  /** In characters. */
  length: number;
  /** JSON. A long message contains only the first items of its `data`. */
  text: string;
  /** How many items of `data` the text does not contain. */
  leftOut: number;
}

export const KEPT_RAW_MESSAGES = 200;
const MAX_TEXT_LENGTH = 16 * 1024;
const KEPT_ITEMS = 5;

export function rawMessage(message: JobMessage, text: string): RawMessage {
  const { seq, type, ts } = message;
  const rest = { seq, type, ts, length: text.length };
  if (text.length <= MAX_TEXT_LENGTH) return { ...rest, text, leftOut: 0 };
  const items = Array.isArray(message.data) ? (message.data as unknown[]) : [];
  // Serialize again instead of slicing: a slice of a string keeps the whole string in memory.
  const shortened = JSON.stringify({ ...message, data: items.slice(0, KEPT_ITEMS) });
  return { ...rest, text: shortened, leftOut: Math.max(0, items.length - KEPT_ITEMS) };
}

export const prettyText = ({ text }: RawMessage): string => JSON.stringify(JSON.parse(text), null, 2);
