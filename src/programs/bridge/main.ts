import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Addresses, splitAddresses } from "../../lib/addresses.ts";
import { parseCommand, print, runCommand, UserError } from "../shared/cli.ts";
import { CONFIG_OPTION, loadConfiguration } from "../shared/config-file.ts";
import { interruption } from "../shared/interruption.ts";
import { BatchQueue } from "./batch-queue.ts";
import { BridgeClient } from "./bridge-client.ts";
import { toOutgoing } from "./outgoing.ts";
import { createRejectionLog } from "./rejection-log.ts";
import { type Incoming, subscribe } from "./subscriber.ts";

const TOPICS = ["agent/+/data", "agent/+/result", "agent/+/status"];

const COMMAND = {
  name: "npm run bridge",
  summary: `Delivers the messages that agents publish to agent/<ap_id>/data, …/result and …/status on the MQTT broker to the controller,
    in batches.

    The bridge acknowledges a message to the broker only after the controller has stored or rejected it. No message is lost if the bridge,
    the controller or the broker stops.`,
  options: CONFIG_OPTION,
  sections: {
    Settings: {
      SERVICE_URL: "URL of the controller (default: http://127.0.0.1:8787)",
      MQTT_URL: "URL of the broker, or of its nodes, separated by commas (default: mqtt://127.0.0.1:1883)",
      BRIDGE_APP: 'Name of a third-party app with the permission "broker" (default: bridge)',
      BRIDGE_KEY: "API key of that app (required)",
      BRIDGE_SHARE: "Group name, if several bridges share the subscriptions of one broker",
      BRIDGE_ID: "Unique name of this bridge (default: the name of this machine)",
    },
  },
  notes: "npm run dev and npm start run a bridge themselves.",
} as const;

/** A retained message does not describe the present, and a last will does not mean that the agent is online. */
const isOutdated = ({ topic, payload, isRetained }: Incoming): boolean =>
  isRetained || (topic.endsWith("/status") && payload.toString() === "offline");

const REJECTION_SUMMARY_MS = 60_000;
const RECONNECT_MS = 1_000;
const DRAIN_MS = 1_500;

async function main(): Promise<void> {
  const command = parseCommand(COMMAND);
  if (command === undefined) return;
  loadConfiguration(command.values.config);
  const { SERVICE_URL, MQTT_URL, BRIDGE_APP, BRIDGE_KEY, BRIDGE_SHARE, BRIDGE_ID } = process.env;
  if (!BRIDGE_KEY)
    throw new UserError(`Set BRIDGE_KEY to the API key of the bridge's app. See ${COMMAND.name} -- --help.`);

  const stop = interruption();
  // After a stop, deliver and acknowledge the messages that were already received, unless that takes too long.
  const giveUp = new AbortController();
  stop.addEventListener("abort", () => setTimeout(() => giveUp.abort(), DRAIN_MS).unref());
  const url = SERVICE_URL || "http://127.0.0.1:8787";
  const controller = new BridgeClient({ url, appName: BRIDGE_APP || "bridge", apiKey: BRIDGE_KEY });
  const nodes = new Addresses(splitAddresses(MQTT_URL || "mqtt://127.0.0.1:1883"));
  const rejections = createRejectionLog();
  let stored = 0;
  const queue = new BatchQueue({
    signal: giveUp.signal,
    async send(batch) {
      const results = await controller.deliver(batch);
      for (const [i, { topic, acknowledge }] of batch.entries()) {
        const error = results[i]?.error;
        if (error === undefined) stored++;
        else rejections.add(topic, error);
        // Acknowledge rejected messages too: the controller would reject them again.
        acknowledge();
      }
    },
  });
  const receive = (message: Incoming): Promise<void> | undefined => {
    const outgoing = isOutdated(message) ? undefined : toOutgoing(message);
    if (outgoing !== undefined) return queue.add(outgoing);
    if (!isOutdated(message)) rejections.add(message.topic, "not a topic of an agent");
    message.acknowledge();
    return undefined;
  };
  const summarizing = setInterval(() => rejections.flush(), REJECTION_SUMMARY_MS);

  while (!stop.aborted) {
    try {
      const { token } = await controller.logIn();
      const options = {
        username: controller.appName,
        password: token,
        clientId: `bridge-${BRIDGE_ID || hostname()}`,
        topics: TOPICS.map((topic) => (BRIDGE_SHARE ? `$share/${BRIDGE_SHARE}/${topic}` : topic)),
        signal: stop,
        drained: () => queue.drained(),
        onMessage: receive,
      };
      await nodes.use((url) => subscribe({ url, ...options }));
    } catch (error) {
      if (!stop.aborted) print(`Waiting for the controller and the broker: ${(error as Error).message}`);
    }
    await sleep(RECONNECT_MS, undefined, { signal: stop }).catch(() => {});
  }
  clearInterval(summarizing);
  rejections.flush();
  print(`Stopped. ${stored} messages stored.`);
}

await runCommand(main);
