import { createDatabaseProbe } from "../accounts/database-probe.ts";
import { createRemotePasswords } from "../auth/passwords.ts";
import { probeBroker } from "../broker/broker-probe.ts";
import type { Config } from "../env.ts";
import type { Check } from "../monitoring/health.ts";
import type { createClickHouse } from "../storage/clickhouse.ts";
import type { Database } from "../storage/libsql.ts";

/** Returns the check of each component that the service needs. */
export function createComponentChecks(
  { MQTT_URL, PASSWORDS_URL, PASSWORDS_TOKEN }: Config,
  database: Database,
  clickhouse: Pick<ReturnType<typeof createClickHouse>, "check">,
  /** Throws if Durable Objects cannot store data. */
  checkObjects: () => Promise<void>,
): Record<string, Check> {
  return {
    libsql: createDatabaseProbe(database),
    clickhouse: () => clickhouse.check(),
    broker: (signal) => probeBroker(MQTT_URL, signal),
    objects: checkObjects,
    ...(PASSWORDS_URL !== undefined &&
      PASSWORDS_TOKEN !== undefined && {
        passwords: createRemotePasswords({ url: PASSWORDS_URL, token: PASSWORDS_TOKEN }).ping,
      }),
  };
}
