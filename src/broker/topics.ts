/** The topics of the broker and the clients that may use them. Another broker needs the same rules in its own configuration. */

/** Topics below `agent/<ap_id>/` that the agent may publish and subscribe to. */
const AGENT_PUBLISH_TOPICS = ["data", "result", "status"];
const AGENT_SUBSCRIBE_TOPICS = ["command"];

/** Emulators receive new spin-ups on this topic. */
export const SPINUP_TOPIC = "emulator_spinup";

/** Returns the topic on which an agent receives its commands. */
export const commandTopic = (apId: string): string => `agent/${apId}/command`;

/** A client of the broker: an agent, or a service with the scope `broker:use`, which may use all topics. */
export interface BrokerClient {
  kind: "agent" | "service";
  name: string;
}

const isOwnTopic = (name: string, topic: string, lastLevels: readonly string[]): boolean =>
  lastLevels.some((level) => topic === `agent/${name}/${level}`);

export function mayPublish({ kind, name }: BrokerClient, topic: string): boolean {
  return kind === "service" ? !topic.startsWith("$") : isOwnTopic(name, topic, AGENT_PUBLISH_TOPICS);
}

/** Returns whether a client may subscribe to a filter. An agent cannot use wildcards: they match no topic of its own. */
export function maySubscribe({ kind, name }: BrokerClient, filter: string): boolean {
  return kind === "service" ? !filter.startsWith("$SYS") : isOwnTopic(name, filter, AGENT_SUBSCRIBE_TOPICS);
}
