import "vitest";
import type { ClickHouseAccess } from "../../src/programs/stack/components/clickhouse-access.ts";

declare module "vitest" {
  /** The values that the global set-up provides to the tests. */
  export interface ProvidedContext {
    /** A shared ClickHouse. Each test file uses its own database. */
    clickhouseUrl: string;
    /** A folder with an accounts database that has all migrations and towns. Tests copy it. */
    databaseImage: string;
    /** The product that tests share if they stop none of its components. */
    product: { url: string; mqttPort: number; mqttWsPort: number; dataDir: string };
    clickhouseAccess: ClickHouseAccess;
    workerEnvironment: Record<string, string>;
    /** The password hasher. The Worker under test uses it only if a test configures it. */
    passwordService: { url: string; token: string };
    passwordSamples: { password: string; nativeHash: string }[];
  }
}
