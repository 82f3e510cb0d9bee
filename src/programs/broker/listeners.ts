import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer } from "node:net";
import type { Duplex } from "node:stream";
import { createWebSocketStream, WebSocketServer } from "ws";
import { limitPackets } from "./packet-limit.ts";

export interface ListenOptions {
  host: string;
  tcpPort: number;
  wsPort: number;
}

const MAX_PACKET_BYTES = 1024 * 1024;

/** Accepts connections over TCP and WebSocket while it is open. Calls `onError` if a port is in use. */
export function createListeners(
  { host, tcpPort, wsPort }: ListenOptions,
  handle: (stream: Duplex, request?: IncomingMessage) => void,
  onError: (error: Error) => void,
): { open(): void; close(): void } {
  const limited = (stream: Duplex, request?: IncomingMessage) =>
    handle(limitPackets(stream, MAX_PACKET_BYTES), request);
  const tcp = createServer((socket) => limited(socket));
  const http = createHttpServer((_request, response) => response.writeHead(426, { Upgrade: "websocket" }).end());
  const sockets = new WebSocketServer({
    server: http,
    handleProtocols: (protocols) => (protocols.has("mqtt") ? "mqtt" : false),
    maxPayload: MAX_PACKET_BYTES,
    perMessageDeflate: false,
  });
  tcp.on("error", onError);
  // Also the errors of `http`.
  sockets.on("error", onError);
  sockets.on("connection", (socket, request) => {
    const stream = createWebSocketStream(socket);
    stream.on("error", () => stream.destroy());
    // A packet may span several frames, so the payload limit of the WebSocket is not enough.
    limited(stream, request);
  });
  return {
    open() {
      tcp.listen(tcpPort, host);
      http.listen(wsPort, host);
    },
    close() {
      tcp.close();
      http.close();
    },
  };
}
