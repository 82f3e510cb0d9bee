/** An MQTT broker (aedes) over TCP and WebSocket: broker-server.ts <folder> <host> <tcp port> <websocket port> <jwks url> <issuer> */
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { Aedes, type Client } from "aedes";
import aedesPersistenceLevel from "aedes-persistence-level";
import { ClassicLevel } from "classic-level";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { createWebSocketStream, WebSocketServer } from "ws";
import * as z from "zod";
import { type BrokerClient, mayPublish, maySubscribe } from "../../src/broker/topics.ts";

const [folder = "", host = "127.0.0.1", tcpPort, wsPort, jwksUrl = "", issuer = ""] = process.argv.slice(2);

const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** The longest pause that a timer can make; a token that runs longer is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const Claims = z.object({
  sub: z.string(),
  login_type: z.enum(["agent", "third_party_app"]),
  scope: z.string().refine((scope) => scope.split(" ").includes("broker:use")),
  exp: z.number(),
});

/** Refused without a word: that is how one asks whether the broker is alive. */
const ANONYMOUS = Object.assign(new Error("No token"), { returnCode: 5 as const });

const keys = createRemoteJWKSet(new URL(jwksUrl));
const known = new WeakMap<Client, BrokerClient>();

// On disk: a message for a client that is away outlives the broker's own end. (aedes acknowledges a message a moment before it is
// on disk; whoever must be sure of more waits for an answer from beyond the broker.)
const level = new ClassicLevel(folder);
await level.open();

const broker = await Aedes.createBroker({
  persistence: aedesPersistenceLevel(level),
  authenticate(client, username, password, done) {
    if (username === undefined) return done(ANONYMOUS, null);
    identify(username, String(password)).then(
      ({ identity, expiresMs }) => {
        known.set(client, identity);
        closeAt(client, expiresMs);
        done(null, true);
      },
      () => done(Object.assign(new Error("The token is not good"), { returnCode: 5 }), null),
    );
  },
  authorizePublish(client, packet, done) {
    const identity = client === null ? undefined : known.get(client);
    const allowed = identity !== undefined && mayPublish(identity, packet.topic);
    done(allowed ? null : new Error(`${identity?.name} may not publish to ${packet.topic}`));
  },
  authorizeSubscribe(client, subscription, done) {
    const identity = client === null ? undefined : known.get(client);
    done(null, identity !== undefined && maySubscribe(identity, subscription.topic) ? subscription : null);
  },
});

/** The client that a token speaks for, if it is the one that the user name says. */
async function identify(
  username: string | undefined,
  token: string,
): Promise<{ identity: BrokerClient; expiresMs: number }> {
  const { payload } = await jwtVerify(token, keys, { algorithms: ["ES256"], issuer, audience: issuer });
  const { sub, login_type, exp } = Claims.parse(payload);
  if (sub !== username) throw new Error("The token is another's");
  return { identity: { kind: login_type === "agent" ? "agent" : "service", name: sub }, expiresMs: exp * 1000 };
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

const tcp = createServer(broker.handle);
const http = createHttpServer((_request, response) => response.writeHead(426, { Upgrade: "websocket" }).end());
const sockets = new WebSocketServer({
  server: http,
  handleProtocols: (protocols) => (protocols.has("mqtt") ? "mqtt" : false),
  maxPayload: MAX_PAYLOAD_BYTES,
  perMessageDeflate: false,
});
sockets.on("connection", (socket, request) => {
  const stream = createWebSocketStream(socket);
  stream.on("error", () => stream.destroy());
  broker.handle(stream, request);
});
broker.on("clientError", (client, error) => {
  if (error !== ANONYMOUS) console.log(`client ${client.id}: ${error.message}`);
});

tcp.listen(Number(tcpPort), host);
http.listen(Number(wsPort), host);

process.once("SIGTERM", () => {
  broker.close(() => process.exit(0));
  tcp.close();
  http.close();
});
