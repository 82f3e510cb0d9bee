import { type ClickHouseClient, ClickHouseError, createClient } from "@clickhouse/client-web";
import * as z from "zod";
import type { StoresConfig } from "../env.ts";
import { withDeadline } from "../lib/deadline.ts";
import { Unavailable } from "../lib/errors.ts";

/** After so long without an answer the server is asked whether it is there at all; one that is may take its time. */
const DOUBT_MS = 1_400;
const PING_MS = 400;
const TIMEOUT_MS = 30_000;

export interface ClickHouse {
  /** Runs work against the server; `Unavailable` where that is away or refuses to take more on. */
  reach<T>(work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Whether the server is there, and has room for more. */
  check(): Promise<void>;
}

/** Below this it cannot write the smallest insert any more, or not for long. */
const MIN_FREE_BYTES = 16 * 1024 * 1024;
const FullDisks = z.array(z.object({ name: z.string() }));

export function createClickHouse(config: StoresConfig, minFreeBytes = MIN_FREE_BYTES): ClickHouse {
  const client = createClient({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    request_timeout: TIMEOUT_MS,
    // Lists of names go in the body: an address has its limits, also those of a proxy.
    use_multipart_params_auto: true,
  });

  const ping = async (): Promise<void> => {
    const result = await client.ping();
    if (!result.success) throw result.error;
  };

  const reach: ClickHouse["reach"] = async (work) => {
    const away = new AbortController();
    const gone = Promise.withResolvers<never>();
    const doubt = setTimeout(() => {
      withDeadline(PING_MS, ping).catch((error: unknown) => {
        away.abort();
        gone.reject(error);
      });
    }, DOUBT_MS);
    try {
      return await Promise.race([work(client, away.signal), gone.promise]);
    } catch (error) {
      throw isBug(error) ? error : new Unavailable("telemetry store", error);
    } finally {
      clearTimeout(doubt);
    }
  };

  const check = async (): Promise<void> => {
    await ping();
    try {
      const answer = await client.query({
        query: "SELECT name FROM system.disks WHERE free_space < {min:UInt64}",
        query_params: { min: minFreeBytes },
        format: "JSONEachRow",
      });
      const [full] = FullDisks.parse(await answer.json());
      if (full !== undefined) throw new Unavailable("telemetry store", new Error(`The disk ${full.name} is full`));
    } catch (error) {
      // Some accounts may not ask that; they may all the same be able to write.
      if (!isBug(error)) throw error;
    }
  };

  return { reach, check };
}

/** Codes with which the server says that this was too much for it: memory, time. */
const TOO_MUCH_CODES = new Set(["159", "160", "241"]);
/** And with which, that nothing can be had of it at the moment: too many queries or parts, no room on its disk. */
const PASSING_CODES = new Set(["202", "252", "75", "76", "243", "1001"]);

/** The server answered, and not that it could not: the question was wrong. */
const isBug = (error: unknown): boolean =>
  error instanceof ClickHouseError && !TOO_MUCH_CODES.has(error.code) && !PASSING_CODES.has(error.code);

/** Whether it is the server's own word that it could not do just what was asked. */
export const isRefused = ({ cause }: Unavailable): boolean =>
  cause instanceof ClickHouseError && TOO_MUCH_CODES.has(cause.code);
