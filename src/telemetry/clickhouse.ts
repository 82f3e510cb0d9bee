import { type ClickHouseClient, ClickHouseError, createClient } from "@clickhouse/client-web";
import { withDeadline } from "../deadline.ts";
import type { StoresConfig } from "../env.ts";
import { Unavailable } from "../errors.ts";

/** After so long without an answer the server is asked whether it is there at all; one that is may take its time. */
const DOUBT_MS = 1_400;
const PING_MS = 400;
const PATIENCE_MS = 30_000;

export interface ClickHouse {
  /** Runs work against the server; `Unavailable` where that is away or refuses to take more on. */
  reach<T>(work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>): Promise<T>;
  ping(): Promise<void>;
}

export function createClickHouse(config: StoresConfig): ClickHouse {
  const client = createClient({
    url: config.CLICKHOUSE_URL,
    username: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    request_timeout: PATIENCE_MS,
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

  return { reach, ping };
}

/** Codes with which the server says that it has too much to do: memory, queries, parts, time. */
const OVERLOAD_CODES = new Set(["159", "160", "202", "241", "252"]);

/** The server answered, and not that it is overloaded: the question was wrong. */
const isBug = (error: unknown): boolean => error instanceof ClickHouseError && !OVERLOAD_CODES.has(error.code);

/** Whether it is the server's own word that it could not do what was asked. */
export const isRefused = ({ cause }: Unavailable): boolean => cause instanceof ClickHouseError;
