import { connect, type IClientOptions, type MqttClient } from "mqtt";
import { splitAddresses } from "../../lib/addresses.ts";

const DEFAULT_PORTS: Record<string, number> = { mqtt: 1883, mqtts: 8883, ws: 80, wss: 443 };

/** Creates an MQTT client that reconnects by itself. If the list has several nodes, each attempt is made at the next one. */
export function connectToNodes(list: string, options: IClientOptions): MqttClient {
  const urls = splitAddresses(list);
  const client = connect(urls[0] ?? "", options);
  let current = 0;
  // The client reads its address from its options at every attempt. (Its own list of servers keeps the TLS name of the first one.)
  client.on("close", () => {
    current = (current + 1) % urls.length;
    if (urls.length > 1) Object.assign(client.options, addressOf(new URL(urls[current] ?? "")));
  });
  return client;
}

function addressOf({ protocol: scheme, hostname, port, pathname, search }: URL): IClientOptions {
  const protocol = scheme.replace(":", "") as NonNullable<IClientOptions["protocol"]>;
  const isWebSocket = protocol.startsWith("ws");
  const host = isWebSocket ? hostname : hostname.replace(/^\[|\]$/g, "");
  return {
    protocol,
    host,
    hostname: host,
    port: port === "" ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port),
    ...(isWebSocket && { path: `${pathname}${search}` }),
    servername: "",
  } as IClientOptions;
}
