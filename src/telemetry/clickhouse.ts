import { type ClickHouseClient, createClient } from "@clickhouse/client-web";

export interface ClickHouseOptions {
  url: string;
  username: string;
  password: string;
  database: string;
}

export interface Telemetry {
  ping(): Promise<void>;
}

/** Below the two seconds within which a caller learns that a store is away. */
const TIMEOUT_MS = 1_500;

export function createTelemetry(options: ClickHouseOptions): Telemetry {
  const client: ClickHouseClient = createClient({ ...options, request_timeout: TIMEOUT_MS });
  return {
    async ping() {
      const result = await client.ping();
      if (!result.success) throw result.error;
    },
  };
}
