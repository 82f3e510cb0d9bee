import { connect } from "cloudflare:sockets";

/**
 * Asks whether an MQTT broker answers. It says CONNECT and takes any CONNACK for a yes, a refusal included: a broker that
 * refuses is alive. An open port alone proves nothing, since the kernel accepts on behalf of a process that hangs.
 */

// MQTT 3.1.1 CONNECT: clean session, no keep-alive, client id left to the broker.
const CONNECT = new Uint8Array([0x10, 12, 0, 4, ...new TextEncoder().encode("MQTT"), 4, 0b10, 0, 0, 0, 0]);
const CONNACK = 0x20;

export async function probeBroker(brokerUrl: string, signal: AbortSignal): Promise<void> {
  const url = new URL(brokerUrl);
  const firstByte = url.protocol.startsWith("ws") ? await overWebSocket(url, signal) : await overTcp(url, signal);
  if (firstByte !== CONNACK) throw new Error("The broker's answer is not MQTT");
}

async function overWebSocket(url: URL, signal: AbortSignal): Promise<number | undefined> {
  const target = new URL(url);
  target.protocol = url.protocol === "wss:" ? "https:" : "http:";
  const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": "mqtt" };
  const { webSocket: socket, status } = await fetch(target, { headers, signal });
  if (socket === null) throw new Error(`The broker answered the WebSocket handshake with ${status}`);
  socket.binaryType = "arraybuffer";
  socket.accept();
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      socket.addEventListener("message", ({ data }) => resolve(new Uint8Array(data as ArrayBuffer)[0]));
      socket.addEventListener("close", () => reject(new Error("The broker closed the connection")));
      socket.addEventListener("error", () => reject(new Error("The connection to the broker broke")));
      socket.send(CONNECT);
    });
  } finally {
    socket.close();
  }
}

async function overTcp(url: URL, signal: AbortSignal): Promise<number | undefined> {
  const secure = url.protocol === "mqtts:";
  const port = url.port === "" ? (secure ? 8883 : 1883) : Number(url.port);
  const socket = connect(
    { hostname: url.hostname, port },
    { secureTransport: secure ? "on" : "off", allowHalfOpen: false },
  );
  // What goes wrong shows in the reads and writes below; these two promises would only report it once more, unheard.
  socket.opened.catch(() => {});
  socket.closed.catch(() => {});
  const close = () => void socket.close().catch(() => {});
  signal.addEventListener("abort", close);
  try {
    const writer = socket.writable.getWriter();
    await writer.write(CONNECT);
    const { value } = await (socket.readable.getReader() as ReadableStreamDefaultReader<Uint8Array>).read();
    return value?.[0];
  } finally {
    close();
  }
}
