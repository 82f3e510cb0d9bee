import { type BrokerClient, isTopicLevel, mayPublish, maySubscribe } from "./topics.ts";

/**
 * The rules of topics.ts for RabbitMQ, which knows queues and routing keys instead of sessions and topics. It replaces every `/` of a topic
 * by a dot, so a dot in a name is one more level: what an agent `a.b` publishes to `agent/a.b/data` is no message of `agent/+/data`.
 */

/** Returns why a client may not log in, or undefined if it may. */
export function loginRejection(client: BrokerClient, clientId: string): string | undefined {
  if (client.kind === "agent" && client.name.includes("."))
    return "RabbitMQ would not deliver the messages of an agent with a dot in its name";
  // Clients of other protocols have no client id.
  if (clientId === "") return "only MQTT clients may log in";
  if (!mayUseClientId(client, clientId)) return `the client id must ${idRule(client)}`;
  return undefined;
}

/** Agents and subscribers each have one id, and with it one session. No other client can have it. */
function mayUseClientId({ kind, name }: BrokerClient, clientId: string): boolean {
  if (kind === "agent" || kind === "subscriber") return clientId === `${kind}/${name}`;
  return !/^(?:agent|subscriber)\//.test(clientId);
}

const idRule = ({ kind, name }: BrokerClient): string =>
  kind === "agent" || kind === "subscriber" ? `be ${kind}/${name}` : "not begin with agent/ or subscriber/";

export interface Resource {
  kind: string;
  name: string;
  permission: string;
}

/** Returns whether a client may use a queue, which is its session, or the exchange of all MQTT messages. */
export function mayUseResource(client: BrokerClient, { kind, name, permission }: Resource): boolean {
  if (kind === "exchange") return name === "amq.topic" && (permission === "read" || permission === "write");
  const [, clientId] = /^mqtt-subscription-(.*)qos[01]$/s.exec(name) ?? [];
  return kind === "queue" && clientId !== undefined && mayUseClientId(client, clientId);
}

/** Returns whether a client may publish messages with a routing key (`write`), or receive those that match it (`read`). */
export function mayUseRoutingKey(client: BrokerClient, permission: string, routingKey: string): boolean {
  const topic = routingKey.replaceAll(".", "/").replaceAll("*", "+");
  if (permission === "write") return mayPublish(client, topic);
  if (permission !== "read") return false;
  if (client.kind !== "agent" && isOwnEvent(client.name, routingKey)) return true;
  // RabbitMQ does not check the topic of each message, so a filter must not match the events of other accounts. It has no shared
  // subscriptions: a bridge that asks for one would receive nothing.
  return !/^(?:event|\+|#|\$share)(?:\/|$)/.test(topic) && maySubscribe(client, topic);
}

/** Only one level may follow the name: `event.a.#` would also match the events of an account `a.b`. */
function isOwnEvent(name: string, routingKey: string): boolean {
  const prefix = `event.${name}.`;
  if (!isTopicLevel(name) || name.includes("*") || !routingKey.startsWith(prefix)) return false;
  return /^[^.#]+$/.test(routingKey.slice(prefix.length));
}
