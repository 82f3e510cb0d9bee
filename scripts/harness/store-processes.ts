import { DEFAULT_ISSUER } from "../../src/env.ts";
import { brokerComponent } from "../../src/programs/stack/components/broker-process.ts";
import {
  type ClickHouseLogin,
  newClickHouseAccess,
  withLogin,
} from "../../src/programs/stack/components/clickhouse-access.ts";
import { clickhouseComponent } from "../../src/programs/stack/components/clickhouse-process.ts";
import { newSqldAccess, sqldComponent } from "../../src/programs/stack/components/sqld.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";
import type { Supervisor } from "../../src/programs/stack/supervisor.ts";

export interface Stores {
  /** With logins, by name. */
  urls: Record<"libsql" | "clickhouse" | "mqtt", string>;
  /** The query that authenticates requests to sqld, or an empty text. */
  sqldQuery: string;
  clickhouseUrl: string;
  clickhouseLogin: ClickHouseLogin;
}

export interface StoresOptions {
  dataDir: string;
  supervisor: Supervisor;
  /** Of the service, whose keys the broker needs. */
  serviceUrl: string;
  /** Earlier versions cannot authenticate at sqld. */
  hasSqldLogin: boolean;
}

/** Starts the stores and the broker beside the product, so that they outlive it. */
export async function startStores({ dataDir, supervisor, serviceUrl, hasSqldLogin }: StoresOptions): Promise<Stores> {
  const ports = await Promise.all([anyFreePort(), anyFreePort(), anyFreePort(), anyFreePort()]);
  const [sqldPort, clickhousePort, tcpPort, wsPort] = ports;
  const access = newClickHouseAccess();
  const sqldAccess = hasSqldLogin ? await newSqldAccess() : undefined;
  const [databases, executable] = [["controller"], process.env.CLICKHOUSE_BIN];
  const jwksUrl = `${serviceUrl}/.well-known/jwks.json`;
  await Promise.all([
    supervisor.start(sqldComponent(dataDir, sqldPort, sqldAccess?.publicKey)),
    supervisor.start(clickhouseComponent({ dataDir, port: clickhousePort, access, databases, executable })),
    supervisor.start(brokerComponent({ dataDir, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: DEFAULT_ISSUER })),
  ]);
  const clickhouseUrl = `http://127.0.0.1:${clickhousePort}`;
  const sqldQuery = sqldAccess === undefined ? "" : `?authToken=${sqldAccess.token}`;
  const urls = {
    libsql: `http://127.0.0.1:${sqldPort}${sqldQuery}`,
    clickhouse: withLogin(clickhouseUrl, access.owner),
    mqtt: `ws://127.0.0.1:${wsPort}`,
  };
  return { urls, sqldQuery, clickhouseUrl, clickhouseLogin: access.owner };
}
