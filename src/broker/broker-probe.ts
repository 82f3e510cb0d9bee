import { connectPacket, KIND, PacketReader } from "./packets.ts";
import { openTransport } from "./transport.ts";

/**
 * Asks whether an MQTT broker answers. It says CONNECT and takes any CONNACK for a yes, a refusal included: a broker that
 * refuses is alive. An open port alone proves nothing, since the kernel accepts on behalf of a process that hangs.
 */
export async function probeBroker(url: string, signal: AbortSignal): Promise<void> {
  const answered = Promise.withResolvers<void>();
  // Where there is no connection nobody waits for it.
  answered.promise.catch(() => {});
  const reader = new PacketReader();
  const onBytes = (bytes: Uint8Array): void => {
    try {
      const [first] = reader.add(bytes);
      if (first?.kind === KIND.connack) answered.resolve();
      else if (first !== undefined) answered.reject(new Error("The broker's answer is not MQTT"));
    } catch (error) {
      answered.reject(error);
    }
  };
  signal.addEventListener("abort", () => answered.reject(signal.reason), { once: true });
  const wire = await openTransport(url, { onBytes, onClose: answered.reject }, signal);
  try {
    // Nobody in particular, who asks for nothing to be kept.
    wire.send(connectPacket({ clientId: "", keepAliveS: 0 }));
    await answered.promise;
  } finally {
    wire.close();
  }
}
