import { connectPacket, PACKET_TYPE, PacketReader } from "./packets.ts";
import { openTransport } from "./transport.ts";

/** Throws if no node of an MQTT broker responds. */
export async function probeBroker(urls: readonly string[], signal: AbortSignal): Promise<void> {
  const responded = new AbortController();
  const either = AbortSignal.any([signal, responded.signal]);
  try {
    await Promise.any(urls.map((url) => probeNode(url, either)));
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error;
  } finally {
    responded.abort(new Error("Another node has responded"));
  }
}

/**
 * Throws if a node does not respond. Sends CONNECT and accepts any CONNACK, even a refusal: a broker that refuses is alive. An open port
 * alone proves nothing, because the kernel accepts connections for a process that hangs.
 */
async function probeNode(url: string, signal: AbortSignal): Promise<void> {
  const responded = Promise.withResolvers<void>();
  // If the connection fails, this promise is never awaited. Its rejection must not be reported as unhandled.
  responded.promise.catch(() => {});
  const reader = new PacketReader();
  const onBytes = (bytes: Uint8Array): void => {
    try {
      const [first] = reader.add(bytes);
      if (first?.type === PACKET_TYPE.connack) responded.resolve();
      else if (first !== undefined) responded.reject(new Error("The broker's response is not MQTT"));
    } catch (error) {
      responded.reject(error);
    }
  };
  signal.addEventListener("abort", () => responded.reject(signal.reason), { once: true });
  const transport = await openTransport(url, { onBytes, onClose: responded.reject }, signal);
  try {
    // An anonymous client with a clean session: the broker keeps nothing for it.
    transport.send(connectPacket({ clientId: "", keepAliveS: 0 }));
    await responded.promise;
  } finally {
    transport.close();
  }
}
