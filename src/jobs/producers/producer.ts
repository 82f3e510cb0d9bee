import * as z from "zod";

/** What the service itself is to produce for a job. */
export const ProducerInput = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("agent_details"),
    /** Of these agents only, where given. */
    apIds: z.array(z.string()).readonly().optional(),
  }),
  z.object({ kind: z.literal("agent_data"), apId: z.string(), fromMs: z.number(), toMs: z.number() }),
]);
export type ProducerInput = z.output<typeof ProducerInput>;

/** A part of it, together with the place to go on from. */
export interface ProducerStep {
  /** One JSON text each. */
  rows: string[];
  cursor: unknown;
  isLast: boolean;
  /** How many rows there will be in all, where that is known better now. */
  estimated?: number;
}

/** Produces what a job asks for, step by step. A step depends on its cursor alone: it can be taken again, by another object. */
export interface Producer {
  /** @param cursor none for the first step */
  next(cursor: unknown): Promise<ProducerStep>;
}

/** What fits in one message. */
export const MAX_ROWS = 5_000;
export const MAX_ROWS_BYTES = 512 * 1024;

/** How many of the rows fit in one message; one always does. */
export function countThatFits(rows: readonly string[]): number {
  let bytes = 0;
  for (const [i, row] of rows.entries()) {
    bytes += row.length;
    if (i === MAX_ROWS || (i > 0 && bytes > MAX_ROWS_BYTES)) return i;
  }
  return rows.length;
}
