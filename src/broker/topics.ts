/** The topics of the broker and the clients that may use them. Another broker needs the same rules in its own configuration. */

/** Topics below `agent/<ap_id>/` that the agent may publish and subscribe to. */
const AGENT_PUBLISH_TOPICS = ["data", "result", "status"];
const AGENT_SUBSCRIBE_TOPICS = ["command"];

/** Emulators receive new spin-ups on this topic. */
export const SPINUP_TOPIC = "emulator_spinup";

/** Returns the topic on which an agent receives its commands. */
export const commandTopic = (apId: string): string => `agent/${apId}/command`;

const EVENT_TOPICS = "event/";
/** Returns the topic on which an account receives the events of a subscription. */
export const eventTopic = (account: string, subscriptionId: string): string =>
  `${EVENT_TOPICS}${account}/${subscriptionId}`;
/** Returns whether the name of an account can be a level of a topic. */
export const isTopicLevel = (name: string): boolean => !/[/+#\0]/.test(name);

/**
 * A client of the broker: the controller itself; a service with the scope `broker:use`, which may use all topics except the events of
 * other accounts; an agent; or a user or app without that scope, which only receives the events of its subscriptions.
 */
export interface BrokerClient {
  kind: "controller" | "service" | "agent" | "subscriber";
  name: string;
}

const isOwnTopic = (name: string, topic: string, lastLevels: readonly string[]): boolean =>
  lastLevels.some((level) => topic === `agent/${name}/${level}`);

export function mayPublish({ kind, name }: BrokerClient, topic: string): boolean {
  if (kind === "agent") return isOwnTopic(name, topic, AGENT_PUBLISH_TOPICS);
  if (kind === "subscriber" || topic.startsWith("$")) return false;
  // A service must not be able to forge events.
  return kind === "controller" || !topic.startsWith(EVENT_TOPICS);
}

/**
 * Returns whether a client may subscribe to a filter, and receive messages of a topic. An agent cannot use wildcards: they match no topic
 * of its own. A service may subscribe to `#`: the broker checks the topic of each message as well.
 */
export function maySubscribe({ kind, name }: BrokerClient, filter: string): boolean {
  if (kind === "agent") return isOwnTopic(name, filter, AGENT_SUBSCRIBE_TOPICS);
  if (filter.startsWith(`${EVENT_TOPICS}${name}/`) && isTopicLevel(name)) return true;
  return kind !== "subscriber" && !filter.startsWith("$SYS") && !filter.startsWith(EVENT_TOPICS);
}
