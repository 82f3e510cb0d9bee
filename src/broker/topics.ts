/** The topics of the broker, and who may use which. Whoever runs another broker writes the same rules in its language. */

/** What an agent says, and hears, under `agent/<ap_id>/`. */
const SAID_BY_AGENT = ["data", "result", "status"];
const HEARD_BY_AGENT = ["command"];

/** Where those who run emulated access points hear of new ones. */
export const SPINUP_TOPIC = "emulator_spinup";

/** Where an agent hears its commands. */
export const commandTopic = (apId: string): string => `agent/${apId}/command`;

/** A client of the broker: an agent, or a service with the scope `broker:use`, which may use all topics. */
export interface BrokerClient {
  kind: "agent" | "service";
  name: string;
}

const isOwn = (name: string, topic: string, last: readonly string[]): boolean =>
  last.some((level) => topic === `agent/${name}/${level}`);

export function mayPublish({ kind, name }: BrokerClient, topic: string): boolean {
  return kind === "service" ? !topic.startsWith("$") : isOwn(name, topic, SAID_BY_AGENT);
}

/** A filter with wildcards is no agent's own topic. */
export function maySubscribe({ kind, name }: BrokerClient, filter: string): boolean {
  return kind === "service" ? !filter.startsWith("$SYS") : isOwn(name, filter, HEARD_BY_AGENT);
}
