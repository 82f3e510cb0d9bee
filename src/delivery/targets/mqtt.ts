import type { BrokerConnection } from "../../broker/mqtt-connection.ts";
import { DELIVERED, failed, type Target } from "./target.ts";

/** Publishes with QoS 1: an event is delivered when the broker has acknowledged it. */
export function createMqttTarget(connect: () => Promise<BrokerConnection>): Target {
  return {
    async send({ address }, [{ event }], signal) {
      let connection: BrokerConnection;
      try {
        connection = await connect();
      } catch {
        return failed("The broker is not available");
      }
      // The connection may be dead. The next call opens another one.
      signal.addEventListener("abort", () => connection.close(), { once: true });
      await connection.publish(address, JSON.stringify(event));
      return DELIVERED;
    },
  };
}
