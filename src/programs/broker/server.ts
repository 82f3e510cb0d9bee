/**
 * An MQTT broker (aedes) over TCP and WebSocket: broker-server.ts <folder> <host> <tcp port> <websocket port> <jwks url> <issuer>
 * With LIBSQL_URL and LIBSQL_AUTH_TOKEN in the environment it ends the connections of accounts that change or go.
 */
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { Aedes, type Client } from "aedes";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { createWebSocketStream, WebSocketServer } from "ws";
import * as z from "zod";
import { createAuditFeed } from "../../accounts/audit-feed.ts";
import { createAccountVersions } from "../../accounts/login/account-versions.ts";
import { type BrokerClient, mayPublish, maySubscribe } from "../../broker/topics.ts";
import { createDatabase, type DatabaseOptions } from "../../storage/libsql.ts";
import { AccessGuard } from "./access-guard.ts";
import { limitPackets } from "./packet-limit.ts";
import { BrokerPersistence, type MayHear } from "./persistence.ts";
import { openSelfHealingLevel } from "./self-healing-level.ts";
import { BrokerSessions, sessionIdOf } from "./sessions.ts";

const [folder = "", host = "127.0.0.1", tcpPort, wsPort, jwksUrl = "", issuer = ""] = process.argv.slice(2);

const MAX_PACKET_BYTES = 1024 * 1024;
/** The longest pause that a timer can make; a token that runs longer is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const Claims = z.object({
  sub: z.string(),
  login_type: z.enum(["agent", "third_party_app"]),
  scope: z.string().refine((scope) => scope.split(" ").includes("broker:use")),
  exp: z.number(),
  ver: z.int(),
});

/** Of tokens that are no account's but the service's own. */
const NO_ACCOUNT = 0;
const LOOK_EVERY_MS = 2_000;
const EXPIRE_EVERY_MS = 10 * 60_000;

/** Refused without a word: that is how one asks whether the broker is alive. */
const ANONYMOUS = Object.assign(new Error("No token"), { returnCode: 5 as const });

const keys = createRemoteJWKSet(new URL(jwksUrl));
const known = new WeakMap<Client, BrokerClient>();
const willTopics = new WeakMap<Client, string>();

// What is acknowledged with QoS 1 or 2 is on disk and outlives the broker's own end, also a kill. (The operating system may still
// hold it in memory: a power cut is another matter.)
const level = await openSelfHealingLevel(folder, {
  onBroken: (error) => {
    console.log(`The doors are shut until the store can be written to: ${error.message}`);
    shutDoors();
  },
  onMended: () => {
    console.log("The store can be written to again.");
    openDoors();
  },
});
const id = `${new Date().toISOString()}-${process.pid}`;
const mayHear: MayHear = (client, topic) => {
  const identity = known.get(client);
  return identity !== undefined && maySubscribe(identity, topic);
};
const store = new BrokerPersistence(level, id, mayHear);

const broker = await Aedes.createBroker({
  id,
  persistence: store,
  preConnect(client, { will }, done) {
    if (will !== undefined) willTopics.set(client, will.topic);
    done(null, true);
  },
  authenticate(client, username, password, done) {
    if (username === undefined) return done(ANONYMOUS, null);
    admit(client, username, String(password)).then(
      ({ identity, version, expiresMs }) => {
        const willTopic = willTopics.get(client);
        if (willTopic !== undefined && !mayPublish(identity, willTopic)) {
          return done(Object.assign(new Error(`The will may not go to ${willTopic}`), { returnCode: 5 }), null);
        }
        known.set(client, identity);
        closeAt(client, expiresMs);
        if (version !== NO_ACCOUNT) closeWithAccount(client, identity, version);
        done(null, true);
      },
      () => done(Object.assign(new Error("The token is not good"), { returnCode: 5 }), null),
    );
  },
  authorizePublish(client, packet, done) {
    // Nobody's: the will of a client that was connected when the broker was killed. It was allowed when the client came.
    const identity = client === null ? undefined : known.get(client);
    if (client !== null && (identity === undefined || !mayPublish(identity, packet.topic))) {
      done(new Error(`${identity?.name} may not publish to ${packet.topic}`));
    } else if (packet.qos === 1) {
      store.storeAhead(packet).then(() => done(null), done);
    } else {
      done(null);
    }
  },
  authorizeSubscribe(client, subscription, done) {
    done(null, client !== null && mayHear(client, subscription.topic) ? subscription : null);
  },
  authorizeForward: (client, packet) => (mayHear(client, packet.topic) ? packet : null),
});

const sessions = new BrokerSessions(level, store, { disconnect: (clientId) => clients()[clientId]?.close() });
await sessions.load();
setInterval(() => void sessions.removeExpired().catch(() => {}), EXPIRE_EVERY_MS).unref();

/** Who it is, once everything is ready for its messages. */
async function admit(client: Client, username: string, password: string): ReturnType<typeof identify> {
  const identified = await identify(username, password);
  const { kind, name } = identified.identity;
  // A client id names a session and what is kept for it. No agent gets at another's by giving its id.
  if (kind === "agent") client.id = sessionIdOf(name, client.id);
  await sessions.open(client.id, client.clean, client);
  await store.prepare(client);
  // A write that fails closes the doors anyway.
  const closed = () => void sessions.close(client.id, client).catch(() => {});
  client.conn.once("close", closed);
  if (client.conn.destroyed) closed();
  return identified;
}

/** The client that a token speaks for, if it is the one that the user name says. */
async function identify(
  username: string,
  token: string,
): Promise<{ identity: BrokerClient; version: number; expiresMs: number }> {
  const { payload } = await jwtVerify(token, keys, { algorithms: ["ES256"], issuer, audience: issuer });
  const { sub, login_type, exp, ver } = Claims.parse(payload);
  if (sub !== username) throw new Error("The token is another's");
  const kind = login_type === "agent" ? "agent" : "service";
  return { identity: { kind, name: sub }, version: ver, expiresMs: exp * 1000 };
}

/** A connection ends with the token that opened it. */
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

const { LIBSQL_URL, LIBSQL_AUTH_TOKEN } = process.env;
const watch = LIBSQL_URL === undefined ? undefined : watchAccounts({ url: LIBSQL_URL, authToken: LIBSQL_AUTH_TOKEN });

/** A connection ends with the account, too, and with whatever else ends the account's tokens. */
function closeWithAccount(client: Client, { kind, name }: BrokerClient, version: number): void {
  const account = kind === "agent" ? "agent" : "app";
  const forget = watch?.add({ kind: account, name, version, end: () => client.close() });
  if (forget !== undefined) client.conn.once("close", forget);
}

function watchAccounts(options: DatabaseOptions): AccessGuard {
  const database = createDatabase(options);
  const accounts = new AccessGuard(createAuditFeed(database), createAccountVersions(database), sessions);
  const lookAgain = (): void => {
    // While the database is away nobody is sent away: who has a good token stays until it is back.
    const looked = accounts.look().catch(() => {});
    void looked.then(() => setTimeout(lookAgain, LOOK_EVERY_MS).unref());
  };
  lookAgain();
  return accounts;
}

const tcp = createServer((socket) => broker.handle(limitPackets(socket, MAX_PACKET_BYTES)));
const http = createHttpServer((_request, response) => response.writeHead(426, { Upgrade: "websocket" }).end());
const sockets = new WebSocketServer({
  server: http,
  handleProtocols: (protocols) => (protocols.has("mqtt") ? "mqtt" : false),
  maxPayload: MAX_PACKET_BYTES,
  perMessageDeflate: false,
});
sockets.on("connection", (socket, request) => {
  const stream = createWebSocketStream(socket);
  stream.on("error", () => stream.destroy());
  // A packet may span several frames.
  broker.handle(limitPackets(stream, MAX_PACKET_BYTES), request);
});
broker.on("clientError", (client, error) => {
  // As JSON: a client chooses its id, and the topic that an error quotes, and must not write lines of its own.
  if (error !== ANONYMOUS) console.log(JSON.stringify({ client: client.id, error: error.message }));
});

function clients(): Record<string, Client> {
  return (broker as Aedes & { clients: Record<string, Client> }).clients;
}

function openDoors(): void {
  tcp.listen(Number(tcpPort), host);
  http.listen(Number(wsPort), host);
}

/** Whoever cannot be served is sent away: a client knows to come again, and a probe finds nobody. */
function shutDoors(): void {
  tcp.close();
  http.close();
  for (const client of Object.values(clients())) client.close();
}

openDoors();

process.once("SIGTERM", () => {
  broker.close(() => process.exit(0));
  tcp.close();
  http.close();
});
