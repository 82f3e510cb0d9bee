import * as z from "zod";
import type { JsonText } from "../../lib/encoding.ts";

const StoredSelector = z
  .array(z.object({ key: z.string(), values: z.array(z.string()).readonly().optional(), negated: z.boolean() }))
  .readonly();
const StoredScope = z.object({
  selectors: z.array(StoredSelector).readonly().optional(),
  ownerId: z.string().optional(),
  apIds: z.array(z.string()).readonly().optional(),
});

/** Tells a producer which rows a job requests. The job's Durable Object stores it. */
export const ProducerInput = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("agent_details"),
    /** If given, only these agents. Jobs that an earlier version started have no scope. */
    apIds: z.array(z.string()).readonly().optional(),
    scope: StoredScope.optional(),
    selector: StoredSelector.optional(),
  }),
  z.object({ kind: z.literal("agent_data"), apId: z.string(), fromMs: z.number(), toMs: z.number() }),
]);
export type ProducerInput = z.output<typeof ProducerInput>;

/** Some rows, and the cursor to continue from. */
export interface ProducerStep {
  rows: JsonText[];
  cursor: unknown;
  isLast: boolean;
  /** A new estimate of the total number of rows. */
  estimated?: number;
}

/** Produces a job's rows step by step. A step depends on its cursor only, so any object can repeat it. */
export interface Producer {
  /** @param cursor undefined for the first step */
  next(cursor: unknown): Promise<ProducerStep>;
}

/** Limits of one message. */
export const MAX_ROWS = 5_000;
export const MAX_ROWS_BYTES = 512 * 1024;

/** Returns how many of the rows fit in one message: at least one, unless there are none. */
export function countThatFits(rows: readonly string[]): number {
  let bytes = 0;
  for (const [i, row] of rows.entries()) {
    bytes += row.length;
    if (i === MAX_ROWS || (i > 0 && bytes > MAX_ROWS_BYTES)) return i;
  }
  return rows.length;
}
