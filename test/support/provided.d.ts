import "vitest";
import type { ClickHouseAccess } from "../../src/programs/stack/components/clickhouse-access.ts";

declare module "vitest" {
  /** What the global set-up hands to the tests. */
  export interface ProvidedContext {
    /** A ClickHouse for everyone: whoever uses it takes a database of their own. */
    clickhouseUrl: string;
    /** A folder with an accounts database that has all migrations and towns; tests copy it. */
    databaseImage: string;
    /** The product that tests share which stop none of its components. */
    product: { url: string; mqttPort: number; mqttWsPort: number; dataDir: string };
    clickhouseAccess: ClickHouseAccess;
    workerEnvironment: Record<string, string>;
    /** The process that hashes passwords, which the Worker under test does not use unless it is told to. */
    passwordService: { url: string; token: string };
    passwordSamples: { password: string; nativeHash: string }[];
  }
}
