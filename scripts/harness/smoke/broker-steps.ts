import { randomUUID } from "node:crypto";
import { connectAsync } from "mqtt";
import { Addresses, splitAddresses } from "../../../src/lib/addresses.ts";
import { UserError } from "../../../src/programs/shared/cli.ts";
import { unlessAborted } from "../../../src/programs/shared/interruption.ts";
import { callbackPath, openReader, type Queued } from "../job-socket.ts";
import { eventually, expectEqual, expectThat, type SmokeContext } from "./steps.ts";
import { chartPath, type Series } from "./telemetry-steps.ts";

/** Job streams: callbacks of an app, commands and reports over MQTT, and the emulator. */

const CONNECT_MS = 15_000;
/** More than all waits of this step together. */
const STEP_MS = 120_000;
const BRIDGE_S = 30;
const COMMAND = "smoke";

/** Posts callbacks as an app, one of them twice under the same key, and reads them. */
export async function checkCallbacks({ client, created, user, app, name }: SmokeContext): Promise<void> {
  const job = `${name}-stream`;
  created.add(`/api/v1/jobs/${job}`);
  using reader = await openReader(client, user, job);
  const post = async (body: unknown[], key: string): Promise<number> => {
    const request = { token: app, body, headers: { "Idempotency-Key": key } };
    return (await client.call<{ seq: number }>(callbackPath(job), request)).seq;
  };
  const [key, first, second] = [randomUUID(), ["first", { of: 2 }], ["second"]];
  expectEqual("The number of the first callback", await post(first, key), 1);
  expectEqual("The number of the first callback, posted again", await post(first, key), 1);
  expectEqual("The number of the second callback", await post(second, randomUUID()), 2);
  for (const expected of [first, second]) expectEqual("The data of a callback", (await reader.next()).data, expected);
  reader.acknowledge(2);
}

const pointsOf = async ({ client, user }: SmokeContext, apId: string, metric: string): Promise<Series["points"]> => {
  const { series } = await client.call<{ series: Series[] }>(chartPath(apId, metric), { token: user });
  return series[0]?.points ?? [];
};

/** Sends a command, which the agent receives and answers, and a report of the agent. */
export async function checkMqtt(context: SmokeContext, nodes: string): Promise<void> {
  const { client, created, user, agent, name: apId } = context;
  // RabbitMQ requires this id.
  const login = { clientId: `agent/${apId}`, username: apId, password: agent };
  const options = { ...login, reconnectPeriod: 0, connectTimeout: CONNECT_MS };
  const connecting = new Addresses(splitAddresses(nodes)).use((url) => connectAsync(url, options));
  const mqtt = await connecting.catch((error: Error) => {
    throw new UserError(`The broker rejects the agent: ${error.message}`);
  });
  // Reported by the close, too.
  mqtt.on("error", () => {});
  // Once the connection is closed, the client never settles what was in flight.
  const lost = new AbortController();
  mqtt.once("close", () => lost.abort(new UserError("The broker closed the agent's connection")));
  const signal = AbortSignal.any([client.signal, lost.signal, AbortSignal.timeout(STEP_MS)]);
  try {
    const result = { status: "done", data: { heard: COMMAND } };
    mqtt.on("message", (_topic, payload) => {
      const { job_number } = JSON.parse(payload.toString()) as Queued;
      mqtt.publish(`agent/${apId}/result`, JSON.stringify({ job_number, ...result }), { qos: 1 });
    });
    await unlessAborted(mqtt.subscribeAsync(`agent/${apId}/command`, { qos: 1 }), signal);
    const path = `/api/v1/send_command?agent_id=${apId}&command=${COMMAND}`;
    const { job_number: job } = await client.call<Queued>(path, { method: "POST", token: user });
    created.add(`/api/v1/jobs/${job}`);
    using reader = await openReader(client, user, job);
    const { type, final, data } = await unlessAborted(reader.next(), signal);
    expectEqual("The command's result", { type, final, data }, { type: "command", final: true, data: [result] });
    const { state } = await client.call<{ state: string }>(`/api/v1/jobs/${job}`, { token: user });
    expectEqual("The state of the command's job", state, "done");

    const message = JSON.stringify({ over_mqtt: 7 });
    await unlessAborted(mqtt.publishAsync(`agent/${apId}/data`, message, { qos: 1 }), signal);
    await eventually("A report through the bridge", BRIDGE_S, async () => {
      return (await pointsOf(context, apId, "over_mqtt"))[0]?.value === 7 || undefined;
    });
  } finally {
    mqtt.end(true);
  }
}

const TYPES = ["5G", "WiFi", "LiFi"];
/** The access points are deleted with their job, long before. */
const DURATION_S = 300;
const REPORTS_WITHIN_S = 60;

/** Spins up an access point of each type and waits for two reports of each. */
export async function checkEmulator(context: SmokeContext): Promise<void> {
  const { client, created, user } = context;
  const spec = { num_access_points: 1, locations: ["Bristol, UK"], num_devices: 5, duration: DURATION_S };
  const emulators = TYPES.map((access_point_type) => ({ access_point_type, ...spec }));
  const request = { token: user, body: { emulators } };
  const { job_number, ap_ids } = await client.call<Queued & { ap_ids: string[] }>("/api/v1/emulator/spinup", request);
  created.add(`/api/v1/emulator/${job_number}`);
  expectThat(ap_ids.length === TYPES.length, `${ap_ids.length} access points were created, not ${TYPES.length}`);
  for (const apId of ap_ids) {
    await eventually(`Two reports of ${apId}`, REPORTS_WITHIN_S, async () => {
      return (await pointsOf(context, apId, "load")).length >= 2 || undefined;
    });
  }
}
