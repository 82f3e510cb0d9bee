import { randomSecret } from "../../auth/secrets.ts";
import { UserError } from "../shared/cli.ts";
import type { Settings, WantedPort } from "../shared/settings.ts";
import { type ClickHouseAccess, clickhouseSettings, newClickHouseAccess } from "./components/clickhouse-access.ts";
import { type MailCatcherOptions, mailUrl } from "./components/mail-catcher-process.ts";
import type { PasswordHasherOptions } from "./components/password-hasher-process.ts";
import { newSqldAccess, type SqldAccess } from "./components/sqld.ts";
import type { InheritedSocket } from "./inherited-socket.ts";
import { anyFreePort, claimPort } from "./ports.ts";
import type { Secrets } from "./stack-secrets.ts";

/** The addresses of the components, whether the stack starts them or they run elsewhere. */
export interface Addresses {
  port: number;
  /** The socket for `port`, if systemd passed one to the stack. */
  socket: InheritedSocket | undefined;
  serviceUrl: string;
  libsqlUrl: string;
  clickhouseUrl: string;
  mqttUrl: string;
  mailUrl: string;
  // Undefined if the component runs elsewhere.
  sqld: { port: number; access: SqldAccess } | undefined;
  clickhouse: { port: number; access: ClickHouseAccess } | undefined;
  mqtt: { tcpPort: number; wsPort: number } | undefined;
  mail: MailCatcherOptions | undefined;
  /** The token is new at every start, because only the Worker uses it. */
  passwords: PasswordHasherOptions;
}

export async function chooseAddresses(settings: Settings, socket?: InheritedSocket): Promise<Addresses> {
  const { host } = settings;
  const port = socket === undefined ? await claimPort(settings.port, host) : portOf(socket, settings.port);
  let mqtt: Addresses["mqtt"];
  if (settings.mqttUrl === undefined) {
    const tcpPort = await claimPort(settings.mqttPort, host, new Set([port]));
    mqtt = { tcpPort, wsPort: await claimPort(settings.mqttWsPort, host, new Set([port, tcpPort])) };
  }
  const sqld =
    settings.libsqlUrl === undefined ? { port: await anyFreePort(), access: await newSqldAccess() } : undefined;
  const clickhouse =
    settings.clickhouseUrl === undefined ? { port: await anyFreePort(), access: newClickHouseAccess() } : undefined;
  const mail = settings.mailUrl === undefined ? { port: await anyFreePort(), token: randomSecret() } : undefined;
  const local: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };
  const reachable = local[host] ?? (host.includes(":") ? `[${host}]` : host);
  return {
    port,
    socket,
    serviceUrl: `http://${reachable}:${port}`,
    libsqlUrl: settings.libsqlUrl ?? `http://127.0.0.1:${sqld?.port}?authToken=${sqld?.access.token}`,
    clickhouseUrl: settings.clickhouseUrl ?? `http://127.0.0.1:${clickhouse?.port}`,
    mqttUrl: settings.mqttUrl ?? `ws://${reachable}:${mqtt?.wsPort}`,
    mailUrl: settings.mailUrl ?? (mail === undefined ? "" : mailUrl(mail)),
    sqld,
    clickhouse,
    mqtt,
    mail,
    passwords: { port: await anyFreePort(), token: randomSecret() },
  };
}

/** Throws if the user has set PORT to another port than that of the socket. */
function portOf({ port }: InheritedSocket, wanted: WantedPort): number {
  if (wanted.isExplicit && wanted.number !== port) {
    throw new UserError(
      `${wanted.name} is ${wanted.number}, but controller.socket listens on ${port}. Use the same port in both.`,
    );
  }
  return port;
}

export function workerEnvironment(settings: Settings, addresses: Addresses, secrets: Secrets): Record<string, string> {
  const { JWT_KEYS, ENCRYPTION_KEY, CREDENTIAL_PEPPER } = secrets;
  return {
    PUBLIC_URL: addresses.serviceUrl,
    ...settings.workerSettings,
    LIBSQL_URL: addresses.libsqlUrl,
    CLICKHOUSE_URL: addresses.clickhouseUrl,
    ...(addresses.clickhouse && clickhouseSettings(addresses.clickhouseUrl, addresses.clickhouse.access.worker)),
    MQTT_URL: addresses.mqttUrl,
    MAIL_URL: addresses.mailUrl,
    PASSWORDS_URL: `http://127.0.0.1:${addresses.passwords.port}`,
    PASSWORDS_TOKEN: addresses.passwords.token,
    ENCRYPTION_KEY,
    CREDENTIAL_PEPPER,
    JWT_KEYS: JSON.stringify(JWT_KEYS),
  };
}
