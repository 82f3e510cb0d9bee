import { env, runInDurableObject } from "cloudflare:test";
import type { StoredMessage } from "../../../src/jobs/stream/envelope.ts";
import { type BufferLimits, MessageBuffer } from "../../../src/jobs/stream/message-buffer.ts";
import { asJsonText } from "../../../src/lib/encoding.ts";

export const NOW = 1_800_000_000_000;
export const LIMITS: BufferLimits = { messages: 5, bytes: 100, retentionMs: 1_000, keys: 8 };

interface Buffered {
  buffer: MessageBuffer;
  clock: { ms: number };
  storage: DurableObjectStorage;
  /** Returns another buffer over the same tables, as after a restart. */
  reopen(): MessageBuffer;
}

/** Runs a test with a buffer in the storage of a new object. */
export function withBuffer<R>(test: (buffered: Buffered) => R | Promise<R>, limits = LIMITS): Promise<R> {
  return runInDurableObject(env.JOB_STREAM.getByName(crypto.randomUUID()), (_, { storage }) => {
    const clock = { ms: NOW };
    const reopen = () => new MessageBuffer({ storage, limits, now: () => clock.ms });
    return test({ buffer: reopen(), clock, storage, reopen });
  });
}

export const message = (data = "[]", key?: string) => ({ type: "agent_data" as const, data: asJsonText(data), key });

/** Returns all stored messages, page by page. */
export function stored(buffer: MessageBuffer, after = 0): StoredMessage[] {
  const all: StoredMessage[] = [];
  for (let page = buffer.page(after); page.length > 0; page = buffer.page(all.at(-1)?.seq ?? 0)) all.push(...page);
  return all;
}
