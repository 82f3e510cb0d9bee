import { type ClickHouseClient, ClickHouseError, createClient } from "@clickhouse/client-web";
import * as z from "zod";
import type { StoresConfig } from "../env.ts";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";
import { describeError } from "../lib/log.ts";

/** Time without a response after which a ping checks that the server still runs. If it does, the query may take longer. */
const PING_AFTER_MS = 1_400;
const PING_TIMEOUT_MS = 400;
const TIMEOUT_MS = 30_000;

export interface ClickHouse {
  /** Runs queries. Throws `Unavailable` if the server does not respond or is overloaded. */
  run<T>(work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Throws if the server does not respond or a disk is full. */
  check(): Promise<void>;
}

/** With less free space even the smallest insert fails, or soon will. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;
const FullDisks = z.array(z.object({ name: z.string() }));

export function createClickHouse(config: StoresConfig, minFreeBytes = MIN_FREE_BYTES): ClickHouse {
  const client = createClient({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    request_timeout: TIMEOUT_MS,
    // Sends long parameters in the body: servers and proxies limit the length of a URL.
    use_multipart_params_auto: true,
  });

  const ping = async (): Promise<void> => {
    const result = await client.ping();
    if (!result.success) throw result.error;
  };

  const run: ClickHouse["run"] = async (work) => {
    const controller = new AbortController();
    const outage = Promise.withResolvers<never>();
    const pingTimer = setTimeout(() => {
      withDeadline(PING_TIMEOUT_MS, ping).catch((error: unknown) => {
        controller.abort();
        outage.reject(error);
      });
    }, PING_AFTER_MS);
    try {
      return await Promise.race([work(client, controller.signal), outage.promise]);
    } catch (error) {
      throw isBug(error) ? error : new Unavailable("telemetry store", error);
    } finally {
      clearTimeout(pingTimer);
    }
  };

  const check = async (): Promise<void> => {
    await ping();
    try {
      const result = await client.query({
        query: "SELECT name FROM system.disks WHERE free_space < {min:UInt64}",
        query_params: { min: minFreeBytes },
        format: "JSONEachRow",
      });
      const [full] = FullDisks.parse(await result.json());
      if (full !== undefined) throw new Unavailable("telemetry store", new Error(`The disk ${full.name} is full`));
    } catch (error) {
      // Ignores missing permission for this query: the account may still be able to write.
      if (!isBug(error)) throw error;
    }
  };

  return { run, check };
}

/** The query took too much time or memory. */
const OVERLOAD_CODES = new Set(["159", "160", "241"]);
/** The server cannot run any query at the moment: too many queries or parts, or a full disk. */
const RETRYABLE_CODES = new Set(["202", "252", "75", "76", "243", "1001"]);

export const isOverload = (error: unknown): boolean =>
  error instanceof ClickHouseError && OVERLOAD_CODES.has(error.code);

/** Returns whether the query itself is wrong, so that a retry cannot succeed. */
const isBug = (error: unknown): boolean =>
  error instanceof ClickHouseError && !OVERLOAD_CODES.has(error.code) && !RETRYABLE_CODES.has(error.code);

/** Describes an error for the log. The server's message may quote what an agent sent; logs must not. */
export const describeStoreError = (error: unknown): string =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : describeError(error);
