import { createTokens } from "../auth/tokens.ts";
import type { Config } from "../env.ts";
import { Addresses } from "../lib/addresses.ts";
import { withDeadline } from "../lib/deadline.ts";
import { BrokerConnection } from "./mqtt-connection.ts";

const KEEP_ALIVE_S = 60;
const CONNECT_TIMEOUT_MS = 5_000;

/** Returns a function that connects an object of the service to a node of the broker, under the name of the object. */
export function createBrokerConnector(config: Config, name: string): () => Promise<BrokerConnection> {
  const { MQTT_URL, JWT_KEYS, JWT_ISSUER, TOKEN_LIFETIME_SECONDS } = config;
  const nodes = new Addresses(MQTT_URL);
  const tokens = createTokens({ keys: JWT_KEYS, issuer: JWT_ISSUER, lifetimeSeconds: TOKEN_LIFETIME_SECONDS });
  return async () => {
    // Belongs to no account: the broker checks only the signature, and no other service accepts the token.
    const password = await tokens.issue({
      sub: name,
      login_type: "third_party_app",
      roles: [],
      scope: "broker:use",
      ver: 0,
    });
    const options = { clientId: name, keepAliveS: KEEP_ALIVE_S, username: name, password };
    return await nodes.use((url) =>
      withDeadline(CONNECT_TIMEOUT_MS, (signal) => BrokerConnection.open(url, options, signal)),
    );
  };
}
