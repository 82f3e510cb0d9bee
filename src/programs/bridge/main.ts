import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { print, runCommand, UserError } from "../shared/cli.ts";
import { CONFIG_HELP, CONFIG_OPTION, loadConfiguration } from "../shared/config-file.ts";
import { interruption } from "../shared/interruption.ts";
import { BatchQueue } from "./batch-queue.ts";
import { createService, type ServiceOptions } from "./bridge-client.ts";
import { toOutgoing } from "./outgoing.ts";
import { createRejectionLog } from "./rejection-log.ts";
import { type Incoming, listen } from "./subscriber.ts";

const HELP = `npm run bridge [-- <options>]

Brings what agents publish to agent/<ap_id>/data, …/result and …/status on the MQTT broker to the service, in batches. A message is acknowledged to the
broker only when the service has stored or rejected it, so nothing is lost when this process, the service or the broker is cut off.

  ${CONFIG_HELP}

Settings:
  SERVICE_URL   the service (http://127.0.0.1:8787)
  MQTT_URL      the broker (mqtt://127.0.0.1:1883)
  BRIDGE_APP    the name of a third-party app with the permission "broker" (bridge)
  BRIDGE_KEY    its api key
  BRIDGE_SHARE  with several bridges on a broker that has shared subscriptions: the name of their group
  BRIDGE_ID     tells several bridges apart (this machine's name)

\`npm run dev\` and \`npm start\` run one by themselves.`;

const TOPICS = ["agent/+/data", "agent/+/result", "agent/+/status"];

/** What the broker tells everyone who comes says nothing of now, and a last will nothing of being there. */
const isOldNews = ({ topic, payload, isRetained }: Incoming): boolean =>
  isRetained || (topic.endsWith("/status") && payload.toString() === "offline");

const REPORT_EVERY_MS = 60_000;
const DRAIN_MS = 1_500;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { help: { type: "boolean", short: "h", default: false }, ...CONFIG_OPTION },
  });
  if (values.help) return print(HELP);
  loadConfiguration(values.config);
  const { SERVICE_URL, MQTT_URL, BRIDGE_APP, BRIDGE_KEY, BRIDGE_SHARE, BRIDGE_ID } = process.env;
  if (!BRIDGE_KEY) throw new UserError("BRIDGE_KEY is missing: the api key of the bridge's app. Try --help.");
  const options: ServiceOptions = {
    url: SERVICE_URL || "http://127.0.0.1:8787",
    appName: BRIDGE_APP || "bridge",
    apiKey: BRIDGE_KEY,
  };

  const stop = interruption();
  // What was taken from the broker when the stop came is still stored and acknowledged, if that does not take long.
  const giveUp = new AbortController();
  stop.addEventListener("abort", () => setTimeout(() => giveUp.abort(), DRAIN_MS).unref());
  const service = createService(options);
  const rejections = createRejectionLog();
  let stored = 0;
  const queue = new BatchQueue({
    signal: giveUp.signal,
    async send(batch) {
      const results = await service.deliver(batch);
      for (const [i, { topic, acknowledge }] of batch.entries()) {
        const error = results[i]?.error;
        if (error === undefined) stored++;
        else rejections.note(topic, error);
        // A rejected message, too: it would be rejected again.
        acknowledge();
      }
    },
  });
  const take = (message: Incoming): Promise<void> | undefined => {
    const outgoing = isOldNews(message) ? undefined : toOutgoing(message);
    if (outgoing !== undefined) return queue.add(outgoing);
    if (!isOldNews(message)) rejections.note(message.topic, "not a topic of an agent");
    message.acknowledge();
    return undefined;
  };
  const reporting = setInterval(() => rejections.flush(), REPORT_EVERY_MS);

  while (!stop.aborted) {
    try {
      const { token } = await service.logIn();
      await listen({
        url: MQTT_URL || "mqtt://127.0.0.1:1883",
        username: options.appName,
        password: token,
        clientId: `bridge-${BRIDGE_ID || hostname()}`,
        topics: TOPICS.map((topic) => (BRIDGE_SHARE ? `$share/${BRIDGE_SHARE}/${topic}` : topic)),
        signal: stop,
        drained: () => queue.drained(),
        onMessage: take,
      });
    } catch (error) {
      if (!stop.aborted) print(`Waiting for the service and the broker: ${(error as Error).message}`);
    }
    await sleep(1_000, undefined, { signal: stop }).catch(() => {});
  }
  clearInterval(reporting);
  rejections.flush();
  print(`Stopped. ${stored} messages stored.`);
}

await runCommand(main);
