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
  z.object({
    kind: z.literal("live_data"),
    /** Its scope is read again and again: labels, groups and grants may change. */
    account: z.object({ kind: z.enum(["user", "app"]), id: z.string(), name: z.string() }),
    selector: StoredSelector,
    toMs: z.number(),
  }),
]);
export type ProducerInput = z.output<typeof ProducerInput>;

/** Returns the type of the messages with rows. */
export const messageTypeOf = ({ kind }: ProducerInput): "agent_details" | "agent_data" =>
  kind === "live_data" ? "agent_data" : kind;

/** Returns when a job ends that may wait for new data. Undefined for other jobs. */
export const endOf = (input: ProducerInput): number | undefined =>
  input.kind === "agent_details" ? undefined : input.toMs;

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
