import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DatabaseOptions } from "../../../storage/libsql.ts";
import type { Component } from "../supervisor.ts";

export interface BrokerOptions {
  dataDir: string;
  host: string;
  tcpPort: number;
  wsPort: number;
  /** The URL of the public keys that verify tokens, and the issuer of the tokens. */
  jwksUrl: string;
  issuer: string;
  /** The accounts database. Without it, a connection closes only when its token expires. */
  accounts?: DatabaseOptions;
  /** A Redis that several brokers share. Without it, the broker keeps everything in its folder. */
  redisUrl?: string;
}

/** The MQTT broker. */
export function brokerComponent({
  dataDir,
  host,
  tcpPort,
  wsPort,
  jwksUrl,
  issuer,
  accounts,
  redisUrl,
}: BrokerOptions): Component {
  const folder = join(dataDir, "broker");
  mkdirSync(folder, { recursive: true });
  const program = fileURLToPath(new URL("../../broker/server.ts", import.meta.url));
  return {
    name: "broker",
    command: process.execPath,
    args: [program, folder, host, String(tcpPort), String(wsPort), jwksUrl, issuer],
    env: {
      ...(redisUrl && { BROKER_REDIS_URL: redisUrl }),
      ...(accounts && { LIBSQL_URL: accounts.url }),
      ...(accounts?.authToken !== undefined && { LIBSQL_AUTH_TOKEN: accounts.authToken }),
    },
    ready: async () => (await accepts(host, tcpPort)) && (await accepts(host, wsPort)),
  };
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: host === "0.0.0.0" ? "127.0.0.1" : host, port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
