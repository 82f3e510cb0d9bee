/** An MQTT broker (aedes) over TCP and WebSocket: broker-server.ts <host> <tcp port> <websocket port> */
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { Aedes } from "aedes";
import { createWebSocketStream, WebSocketServer } from "ws";

const [host = "127.0.0.1", tcpPort, wsPort] = process.argv.slice(2);

const broker = await Aedes.createBroker();
const tcp = createServer(broker.handle);
const http = createHttpServer((_request, response) => response.writeHead(426, { Upgrade: "websocket" }).end());
const sockets = new WebSocketServer({
  server: http,
  handleProtocols: (protocols) => (protocols.has("mqtt") ? "mqtt" : false),
  maxPayload: 1024 * 1024,
  perMessageDeflate: false,
});
sockets.on("connection", (socket, request) => {
  const stream = createWebSocketStream(socket);
  stream.on("error", () => stream.destroy());
  broker.handle(stream, request);
});
broker.on("clientError", (client, error) => console.log(`client ${client.id}: ${error.message}`));

tcp.listen(Number(tcpPort), host);
http.listen(Number(wsPort), host);

process.once("SIGTERM", () => {
  broker.close(() => process.exit(0));
  tcp.close();
  http.close();
});
