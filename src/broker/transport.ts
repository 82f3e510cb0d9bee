import { connect } from "cloudflare:sockets";

/** Carries bytes to and from a broker, over WebSocket or TCP, depending on the URL. */
export interface Transport {
  send(bytes: Uint8Array): void;
  close(): void;
}

export interface TransportEvents {
  onBytes(bytes: Uint8Array): void;
  /** Called once, whichever side closes the connection. */
  onClose(error: Error): void;
}

export async function openTransport(
  brokerUrl: string,
  events: TransportEvents,
  signal: AbortSignal,
): Promise<Transport> {
  const url = new URL(brokerUrl);
  return url.protocol.startsWith("ws") ? await overWebSocket(url, events, signal) : overTcp(url, events);
}

async function overWebSocket(url: URL, { onBytes, onClose }: TransportEvents, signal: AbortSignal): Promise<Transport> {
  const target = new URL(url);
  target.protocol = url.protocol === "wss:" ? "https:" : "http:";
  const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": "mqtt" };
  const { webSocket: socket, status } = await fetch(target, { headers, signal });
  if (socket === null) throw new Error(`The broker responded to the WebSocket handshake with ${status}`);
  const closed = once(onClose);
  socket.binaryType = "arraybuffer";
  socket.accept();
  socket.addEventListener("message", ({ data }) => onBytes(new Uint8Array(data as ArrayBuffer)));
  socket.addEventListener("close", () => closed(new Error("The broker closed the connection")));
  socket.addEventListener("error", () => closed(new Error("The connection to the broker failed")));
  return { send: (bytes) => socket.send(bytes), close: () => socket.close() };
}

function overTcp(url: URL, { onBytes, onClose }: TransportEvents): Transport {
  const isSecure = url.protocol === "mqtts:";
  const port = url.port === "" ? (isSecure ? 8883 : 1883) : Number(url.port);
  const socket = connect(
    { hostname: url.hostname, port },
    { secureTransport: isSecure ? "on" : "off", allowHalfOpen: false },
  );
  // The reads and writes below report all errors. These two promises would repeat them as unhandled rejections.
  socket.opened.catch(() => {});
  socket.closed.catch(() => {});
  const closed = once(onClose);
  const writer = socket.writable.getWriter();
  const read = async (): Promise<void> => {
    for await (const bytes of socket.readable as ReadableStream<Uint8Array>) onBytes(bytes);
    throw new Error("The broker closed the connection");
  };
  read().catch((error: unknown) =>
    closed(error instanceof Error ? error : new Error("The connection to the broker failed")),
  );
  return {
    send: (bytes) => void writer.write(bytes).catch(closed),
    close: () => void socket.close().catch(() => {}),
  };
}

function once(onClose: (error: Error) => void): (error: Error) => void {
  let isClosed = false;
  return (error) => {
    if (!isClosed) onClose(error);
    isClosed = true;
  };
}
