import { connect } from "cloudflare:sockets";

/** Bytes to and from a broker, over WebSocket or TCP as its address says. */
export interface Transport {
  send(bytes: Uint8Array): void;
  close(): void;
}

export interface TransportEvents {
  onBytes(bytes: Uint8Array): void;
  /** Called once, whoever ended it. */
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
  if (socket === null) throw new Error(`The broker answered the WebSocket handshake with ${status}`);
  const ended = once(onClose);
  socket.binaryType = "arraybuffer";
  socket.accept();
  socket.addEventListener("message", ({ data }) => onBytes(new Uint8Array(data as ArrayBuffer)));
  socket.addEventListener("close", () => ended(new Error("The broker closed the connection")));
  socket.addEventListener("error", () => ended(new Error("The connection to the broker broke")));
  return { send: (bytes) => socket.send(bytes), close: () => socket.close() };
}

function overTcp(url: URL, { onBytes, onClose }: TransportEvents): Transport {
  const secure = url.protocol === "mqtts:";
  const port = url.port === "" ? (secure ? 8883 : 1883) : Number(url.port);
  const socket = connect(
    { hostname: url.hostname, port },
    { secureTransport: secure ? "on" : "off", allowHalfOpen: false },
  );
  // What goes wrong shows in the reads and writes below; these two promises would only report it once more, unheard.
  socket.opened.catch(() => {});
  socket.closed.catch(() => {});
  const ended = once(onClose);
  const writer = socket.writable.getWriter();
  const read = async (): Promise<void> => {
    for await (const bytes of socket.readable as ReadableStream<Uint8Array>) onBytes(bytes);
    throw new Error("The broker closed the connection");
  };
  read().catch((error: unknown) =>
    ended(error instanceof Error ? error : new Error("The connection to the broker broke")),
  );
  return {
    send: (bytes) => void writer.write(bytes).catch(ended),
    close: () => void socket.close().catch(() => {}),
  };
}

function once(onClose: (error: Error) => void): (error: Error) => void {
  let isOver = false;
  return (error) => {
    if (!isOver) onClose(error);
    isOver = true;
  };
}
