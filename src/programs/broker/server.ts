import { Aedes, type Client } from "aedes";
import { createAuditFeed } from "../../accounts/audit-feed.ts";
import { createAccountVersions } from "../../accounts/login/account-versions.ts";
import { NO_ACCOUNT } from "../../broker/client-kind.ts";
import { type BrokerClient, mayPublish, maySubscribe } from "../../broker/topics.ts";
import { createDatabase, type DatabaseOptions } from "../../storage/libsql.ts";
import { parseCommand, print, runCommand, UserError } from "../shared/cli.ts";
import { AccessGuard } from "./access-guard.ts";
import { openDiskStore } from "./disk-store.ts";
import { sessionIdOf } from "./limits.ts";
import { createListeners, type ListenOptions } from "./listeners.ts";
import type { BrokerStore, Sessions, StoreEvents } from "./store.ts";
import { createTokenVerifier, type TokenVerifierOptions, type VerifiedToken } from "./token-verifier.ts";

const COMMAND = {
  name: "node scripts/broker.ts",
  arguments: "<folder> <host> <TCP port> <WebSocket port> <JWKS URL> <issuer>",
  summary: `Runs the MQTT broker over TCP and WebSocket. Clients log in with their name and, as password, a token of the controller.

    The folder holds the sessions and messages. The JWKS URL is that of the controller's public keys
    (https://<controller>/.well-known/jwks.json), and the issuer is its JWT_ISSUER.`,
  sections: {
    Settings: {
      LIBSQL_URL: "Accounts database. With it, the broker disconnects clients whose account changes or is deleted",
      LIBSQL_AUTH_TOKEN: "Token for that database",
      BROKER_REDIS_URL:
        "Redis that holds the sessions and messages instead of the folder, for several brokers that work as one",
    },
  },
  notes: "npm run dev and npm start run a broker themselves.",
} as const;

interface BrokerOptions extends ListenOptions, TokenVerifierOptions {
  folder: string;
  /** Holds the sessions and messages instead of the folder. */
  redisUrl: string | undefined;
  /** The accounts database. */
  accounts: DatabaseOptions | undefined;
}

/** The longest delay of a timer. For a token that is valid longer, the timer is set again. */
const MAX_TIMER_MS = 2 ** 31 - 1;
const ACCESS_CHECK_MS = 2_000;

/** The CONNACK return code "not authorized". */
const notAuthorized = (message: string) => Object.assign(new Error(message), { returnCode: 5 as const });
/** Not logged: health checks connect without a token. */
const NO_TOKEN = notAuthorized("No token");

await runCommand(async () => {
  const command = parseCommand(COMMAND);
  if (command === undefined) return;
  const [folder, host, tcpPort, wsPort, jwksUrl, issuer] = command.positionals;
  if (!folder || !host || !tcpPort || !wsPort || !jwksUrl || !URL.canParse(jwksUrl) || !issuer)
    throw new UserError(`Expected the arguments ${COMMAND.arguments}. See ${COMMAND.name} --help.`);
  const { LIBSQL_URL, LIBSQL_AUTH_TOKEN, BROKER_REDIS_URL: redisUrl } = process.env;
  const accounts = LIBSQL_URL === undefined ? undefined : { url: LIBSQL_URL, authToken: LIBSQL_AUTH_TOKEN };
  const ports = { tcpPort: Number(tcpPort), wsPort: Number(wsPort) };
  await runBroker({ folder, redisUrl, host, ...ports, jwksUrl, issuer, accounts });
});

async function runBroker({ folder, redisUrl, accounts, jwksUrl, issuer, ...ports }: BrokerOptions): Promise<void> {
  const verifyToken = createTokenVerifier({ jwksUrl, issuer });
  const identities = new WeakMap<Client, BrokerClient>();
  const willTopics = new WeakMap<Client, string>();

  const events: StoreEvents = {
    onBroken(message) {
      print(`${message}. No connections are accepted until this works again.`);
      listeners.close();
      for (const client of Object.values(clients())) {
        client.close();
        client.conn.destroy();
      }
    },
    onHealed(message) {
      print(`${message}. Connections are accepted.`);
      listeners.open();
    },
    disconnect: (clientId) => clients()[clientId]?.close(),
    canReceive(client, topic) {
      const identity = identities.get(client);
      return identity !== undefined && maySubscribe(identity, topic);
    },
  };
  const store = await openStore(folder, redisUrl, events);
  const { id, mq, persistence, sessions } = store;

  const broker = await Aedes.createBroker({
    id,
    persistence,
    ...(mq !== undefined && { mq }),
    preConnect(client, { will }, done) {
      if (will !== undefined) willTopics.set(client, will.topic);
      done(null, true);
    },
    authenticate(client, username, password, done) {
      if (username === undefined) return done(NO_TOKEN, null);
      admit(client, username, String(password)).then(
        ({ client: identity, account, version, expiresMs }) => {
          const willTopic = willTopics.get(client);
          if (willTopic !== undefined && !mayPublish(identity, willTopic)) {
            return done(notAuthorized(`${identity.name} may not set a last will for ${willTopic}`), null);
          }
          identities.set(client, identity);
          closeAt(client, expiresMs);
          if (version !== NO_ACCOUNT) closeOnAccountChange(client, account, identity.name, version);
          done(null, true);
        },
        () => done(notAuthorized("The token is invalid"), null),
      );
    },
    authorizePublish(client, packet, done) {
      // Without a client, it is the last will of a client that was connected when the broker was killed. It was authorized then.
      const identity = client === null ? undefined : identities.get(client);
      if (client !== null && (identity === undefined || !mayPublish(identity, packet.topic))) {
        done(new Error(`${identity?.name} may not publish to ${packet.topic}`));
      } else if (packet.qos === 1) {
        persistence.storeBeforeAcknowledging(packet).then(() => done(null), done);
      } else {
        done(null);
      }
    },
    authorizeSubscribe(client, subscription, done) {
      const isAllowed = client !== null && events.canReceive(client, subscription.topic);
      const topic = isAllowed ? store.filterOf(client, subscription.topic) : undefined;
      done(null, topic === undefined ? null : { ...subscription, topic });
    },
    authorizeForward: (client, packet) =>
      events.canReceive(client, packet.topic) && store.forwards(client, packet) ? packet : null,
  });
  // aedes reports here that it could not publish the last wills of a broker that was killed.
  (broker as NodeJS.EventEmitter).on("error", ({ message }: Error) => print(`Broker error: ${message}`));
  const clients = (): Record<string, Client> => (broker as Aedes & { clients: Record<string, Client> }).clients;

  await store.start();
  const guard = accounts === undefined ? undefined : guardAccess(accounts, sessions);

  /** Verifies a client's token and prepares its session. */
  async function admit(client: Client, username: string, password: string): Promise<VerifiedToken> {
    const verified = await verifyToken(username, password);
    const { kind, name } = verified.client;
    // A client id names a session and its messages. The prefix keeps an agent from using the session of another one.
    if (kind === "agent") client.id = sessionIdOf(name, client.id);
    if (kind === "subscriber") {
      if (!client.clean) throw notAuthorized("Accounts without the scope broker:use have no persistent sessions");
      client.id = `subscriber/${name}/${client.id}`;
    }
    await sessions.open(client.id, client.clean, client);
    await persistence.prepare(client);
    // A failed write closes all connections anyway.
    const closed = () => void sessions.close(client.id, client).catch(() => {});
    client.conn.once("close", closed);
    if (client.conn.destroyed) closed();
    return verified;
  }

  /** Closes a connection when its account is deleted or changes so that the token becomes invalid. */
  function closeOnAccountChange(client: Client, kind: VerifiedToken["account"], name: string, version: number): void {
    const remove = guard?.add({ kind, name, version, disconnect: () => client.close() });
    if (remove !== undefined) client.conn.once("close", remove);
  }

  broker.on("clientError", (client, error) => {
    // A health check that another node has answered first.
    const isGone =
      !identities.has(client) && ["EPIPE", "ECONNRESET"].includes((error as NodeJS.ErrnoException).code ?? "");
    // As JSON, because the client chooses its id and the topic in the error, and must not forge log lines.
    if (error !== NO_TOKEN && !isGone) print(JSON.stringify({ client: client.id, error: error.message }));
  });
  const listeners = createListeners(
    ports,
    (stream, request) => void broker.handle(stream, request),
    (error) => {
      print(`Cannot accept connections: ${error.message}`);
      process.exit(1);
    },
  );
  listeners.open();
  process.once("SIGTERM", () => {
    broker.close(() => process.exit(0));
    listeners.close();
  });
}

/** The client for Redis is loaded only if it is needed. */
async function openStore(folder: string, redisUrl: string | undefined, events: StoreEvents): Promise<BrokerStore> {
  if (!redisUrl) return await openDiskStore(folder, events);
  const { openRedisStore } = await import("./redis/redis-store.ts");
  return await openRedisStore(redisUrl, events);
}

/** Closes a connection when its token expires. */
function closeAt(client: Client, expiresMs: number): void {
  const leftMs = expiresMs - Date.now();
  if (leftMs <= 0) {
    client.close();
    return;
  }
  const timer = setTimeout(() => closeAt(client, expiresMs), Math.min(leftMs, MAX_TIMER_MS));
  timer.unref();
  client.conn.once("close", () => clearTimeout(timer));
}

function guardAccess(options: DatabaseOptions, sessions: Sessions): AccessGuard {
  const database = createDatabase(options);
  const guard = new AccessGuard(createAuditFeed(database), createAccountVersions(database), sessions);
  const check = (): void => {
    // During an outage of the database, clients with a valid token stay connected.
    const checked = guard.check().catch(() => {});
    void checked.then(() => setTimeout(check, ACCESS_CHECK_MS).unref());
  };
  check();
  return guard;
}
