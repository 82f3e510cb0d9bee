import { ClickHouseError } from "@clickhouse/client-web";
import { describeError } from "../lib/log.ts";

/** Tells apart what a retry may resolve, and what it cannot. */

/** The query took too much time or memory. */
const OVERLOAD_CODES = new Set(["159", "160", "241"]);

/** The node cannot write at the moment, because it has lost Keeper: its tables are read-only. Another node may be able to. */
const NODE_CODES = new Set(["225", "242", "999"]);

/** Another node of the cluster does not respond, or its connection broke: end of data, name, time-out, network, all attempts failed. */
const SHARD_CODES = new Set(["32", "198", "209", "210", "279"]);

const RETRYABLE_CODES = new Set([
  // Too many queries or parts, or a full disk.
  ...["202", "252", "75", "76", "243", "1001"],
  // The node stops: the query was aborted or cancelled.
  ...["236", "394"],
  // Too few replicas respond, an earlier insert waits for them, or it is not known whether they have the insert.
  ...["285", "286", "319"],
  ...OVERLOAD_CODES,
  ...NODE_CODES,
  ...SHARD_CODES,
]);

/** Returns the code of the server's error from the chain of causes. Undefined if the server did not respond. */
function codeOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof ClickHouseError) return cause.code;
  return undefined;
}

export const isOverload = (error: unknown): boolean => OVERLOAD_CODES.has(codeOf(error) ?? "");

/** Returns whether a shard of a cluster does not respond. The other shards may. */
export const isShardFailure = (error: unknown): boolean => SHARD_CODES.has(codeOf(error) ?? "");

/** Returns whether another node may succeed: this one does not respond, or cannot write. */
export function isNodeFailure(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined || NODE_CODES.has(code);
}

/** Returns whether the query itself is wrong, so that a retry cannot succeed. */
export function isBug(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && !RETRYABLE_CODES.has(code);
}

/** Describes an error for the log. The server's message may quote what an agent sent; logs must not. */
export const describeStoreError = (error: unknown): string =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : describeError(error);
