import "vitest";
import type { ClickHouseAccess } from "../../scripts/stack/clickhouse-access.ts";

declare module "vitest" {
  /** What the global set-up hands to the tests. */
  export interface ProvidedContext {
    /** A ClickHouse for everyone: whoever uses it takes a database of their own. */
    clickhouseUrl: string;
    clickhouseAccess: ClickHouseAccess;
    workerEnvironment: Record<string, string>;
    /** The process that hashes passwords, which the Worker under test does not use unless it is told to. */
    passwordService: { url: string; token: string };
    passwordSamples: { password: string; nativeHash: string }[];
  }
}
